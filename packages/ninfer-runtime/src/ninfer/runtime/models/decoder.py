"""A dense decoder: tokens in, hidden states and float32 logits out, keys and values in a pool.

Knows nothing of sequences, sampling or masks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from ninfer.runtime.models.config import DecoderConfig
from ninfer.runtime.models.forward_batch import ForwardBatch, RowPlan
from ninfer.runtime.models.kv_pool import KvPool
from ninfer.runtime.models.linear import Linear, LinearStrategy
from ninfer.runtime.models.rope import Rotation, rotate
from ninfer.runtime.models.weights import LayerWeights, Projection, WeightReader


class Decoder:
    """One model in memory.

    Shapes: hidden dtype[N, hidden] after the final norm; logits float32[M, vocab_rows].
    """

    def __init__(
        self,
        config: DecoderConfig,
        weights: WeightReader,
        strategy: LinearStrategy,
        *,
        device: torch.device,
        dtype: torch.dtype,
        loaded: Callable[[int], None] = lambda layer: None,
    ) -> None:
        self.config = config
        self.device = device
        self.dtype = dtype
        self.strategy = strategy
        self._embedding = weights.embedding()
        self._layers = []
        for index in range(config.layers):
            self._layers.append(_Block(config, weights.layer(index), strategy))
            loaded(index + 1)
        self._norm = weights.norm()
        self._head = strategy.prepare(weights.head())
        self._rotation = Rotation(config.rope, device, dtype)

    def new_pool(self, pages: int) -> KvPool:
        """Return an empty pool that fits this model."""
        c = self.config
        return KvPool(c.layers, pages, c.kv_heads, c.head_dim, device=self.device, dtype=self.dtype)

    @torch.inference_mode()
    def forward(self, batch: ForwardBatch, pool: KvPool) -> Tensor:
        """Return the hidden states of all columns.

        Effects: keys and values of all columns are written to the pool at the batch's slots.
        """
        x = self._embedding[batch.token_ids]
        rotation = self._rotation.at(batch.positions)
        for index, block in enumerate(self._layers):
            x = block(x, rotation, batch, pool, index)
        return functional.rms_norm(x, (self.config.hidden,), self._norm, self.config.norm_eps)

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """Return the logits of hidden states [M, hidden]."""
        return self._head(hidden).float()


class _Block:
    """Attention and MLP of one layer, each behind a norm and a residual."""

    def __init__(
        self, config: DecoderConfig, weights: LayerWeights, strategy: LinearStrategy
    ) -> None:
        def prepare(projection: Projection) -> Linear:
            return strategy.prepare(projection.weight, projection.bias)

        self._config = config
        self._input_norm = weights.input_norm
        self._qkv = prepare(weights.qkv)
        self._head_norm = weights.head_norm
        self._output = prepare(weights.output)
        self._mlp_norm = weights.mlp_norm
        self._gate_up = prepare(weights.gate_up)
        self._down = prepare(weights.down)

    def __call__(
        self,
        x: Tensor,
        rotation: tuple[Tensor, Tensor],
        batch: ForwardBatch,
        pool: KvPool,
        layer: int,
    ) -> Tensor:
        c = self._config
        normed = functional.rms_norm(x, (c.hidden,), self._input_norm, c.norm_eps)
        qkv = self._qkv(normed).view(-1, c.heads + 2 * c.kv_heads, c.head_dim)
        qk = qkv[:, : c.heads + c.kv_heads]
        if self._head_norm is not None:
            qk = functional.rms_norm(qk, (c.head_dim,), eps=c.norm_eps) * self._head_norm
        qk = rotate(qk, *rotation)
        pool.write(layer, batch.slots, qk[:, c.heads :], qkv[:, c.heads + c.kv_heads :])
        attended = attend(qk[:, : c.heads], pool.keys[layer], pool.values[layer], batch.rows)
        x = x + self._output(attended)
        normed = functional.rms_norm(x, (c.hidden,), self._mlp_norm, c.norm_eps)
        gate, up = self._gate_up(normed).chunk(2, dim=-1)
        return x + self._down(functional.silu(gate) * up)


def attend(queries: Tensor, keys: Tensor, values: Tensor, rows: Sequence[RowPlan]) -> Tensor:
    """Return what every column attends to, [N, heads · head_dim].

    Math:   softmax(q kᵀ / √head_dim) v over the row's tokens up to the column's own; query heads
            share keys in groups of heads / kv_heads.
    Shapes: queries [N, heads, head_dim]; keys, values [slots, kv_heads, head_dim] of one layer.
    """
    parts = []
    for row in rows:
        q = queries[row.first : row.first + row.columns].transpose(0, 1)
        out = functional.scaled_dot_product_attention(
            q.unsqueeze(0),
            row.read(keys).unsqueeze(0),
            row.read(values).unsqueeze(0),
            attn_mask=row.mask,
            enable_gqa=True,
        )
        parts.append(out[0].transpose(0, 1).reshape(row.columns, -1))
    return parts[0] if len(parts) == 1 else torch.cat(parts)
