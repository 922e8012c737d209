"""A dense decoder: tokens in, hidden states and float32 logits out, keys and values in a pool.

Knows nothing of sequences, sampling or masks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from ninfer.runtime.models.attention import attend
from ninfer.runtime.models.config import DecoderConfig
from ninfer.runtime.models.forward_batch import ForwardBatch
from ninfer.runtime.models.kv_pool import KvPool
from ninfer.runtime.models.linear import Linear, LinearStrategy
from ninfer.runtime.models.norm import prepare_norm
from ninfer.runtime.models.rope import Rotation, rotate
from ninfer.runtime.models.weights import LayerWeights, Projection, WeightReader


class ColumnStates(NamedTuple):
    """What a forward pass says of every column.

    Shapes: hidden dtype[N, hidden] after the final norm; taps dtype[N, layers asked · hidden], the
            residual streams after those layers side by side, None where none were asked.
    """

    hidden: Tensor
    taps: Tensor | None

    @property
    def features(self) -> Tensor:
        """Return what a drafter reads: the taps, or without any the final hidden states."""
        return self.hidden if self.taps is None else self.taps


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
        self._norm = prepare_norm(weights.norm(), config.norm_eps)
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
        return self.states(batch, pool).hidden

    @torch.inference_mode()
    def states(self, batch: ForwardBatch, pool: KvPool, taps: Sequence[int] = ()) -> ColumnStates:
        """Return the hidden states of all columns and the streams after the layers ``taps``.

        Effects: as of ``forward``.
        """
        x = self._embedding[batch.token_ids]
        rotation = self._rotation.at(batch.positions)
        streams = {}
        layers = zip(self._layers, pool.keys, pool.values, strict=True)
        for index, (block, keys, values) in enumerate(layers):
            x = block(x, rotation, batch, keys, values)
            if index in taps:
                streams[index] = x
        tapped = torch.cat([streams[index] for index in taps], dim=-1) if taps else None
        return ColumnStates(self._norm(x), tapped)

    def embed(self, token_ids: Tensor) -> Tensor:
        """Return the embeddings of tokens int64[N], dtype[N, hidden]."""
        return self._embedding[token_ids]

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
        self._input_norm = prepare_norm(weights.input_norm, config.norm_eps)
        self._qkv = prepare(weights.qkv)
        self._head_norm = weights.head_norm
        self._output = prepare(weights.output)
        self._mlp_norm = prepare_norm(weights.mlp_norm, config.norm_eps)
        self._gate_up = prepare(weights.gate_up)
        self._down = prepare(weights.down)

    def __call__(
        self,
        x: Tensor,
        rotation: tuple[Tensor, Tensor],
        batch: ForwardBatch,
        keys: Tensor,
        values: Tensor,
    ) -> Tensor:
        c = self._config
        qkv = self._qkv(self._input_norm(x)).view(-1, c.heads + 2 * c.kv_heads, c.head_dim)
        qk = qkv[:, : c.heads + c.kv_heads]
        if self._head_norm is not None:
            qk = functional.rms_norm(qk, (c.head_dim,), eps=c.norm_eps) * self._head_norm
        qk = rotate(qk, *rotation)
        keys.index_copy_(0, batch.slots, qk[:, c.heads :])
        values.index_copy_(0, batch.slots, qkv[:, c.heads + c.kv_heads :])
        attended = attend(qk[:, : c.heads], keys, values, batch)
        x = self._output.added_to(x, attended)
        gate, up = self._gate_up(self._mlp_norm(x)).chunk(2, dim=-1)
        return self._down.added_to(x, functional.silu(gate) * up)
