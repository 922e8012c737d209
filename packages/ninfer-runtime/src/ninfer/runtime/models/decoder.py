"""A decoder: tokens in, hidden states and float32 logits out, state in a pool.

Knows nothing of sequences, sampling or masks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import NamedTuple

import torch
from torch import Tensor

from ninfer.runtime.models.attention_block import AttentionBlock
from ninfer.runtime.models.config import DecoderConfig
from ninfer.runtime.models.forward_batch import ForwardBatch
from ninfer.runtime.models.hybrid_block import DeltaBlock
from ninfer.runtime.models.kv_pool import KvPool
from ninfer.runtime.models.linear import LinearStrategy
from ninfer.runtime.models.norm import prepare_norm
from ninfer.runtime.models.recurrent_pool import RecurrentPool
from ninfer.runtime.models.rope import Rotation
from ninfer.runtime.models.weights import WeightReader

_Layer = Callable[[Tensor, tuple[Tensor, Tensor], ForwardBatch, KvPool], Tensor]


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
    Units:  ``weight_bytes`` of all weights, a tied head's own copy included.
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
        self._layers: list[_Layer] = []
        recurrent = () if config.delta is None else config.delta.layers
        places = count()
        for index in range(config.layers):
            if index in recurrent:
                layer = weights.delta_layer(index)
                place = recurrent.index(index)
                self._layers.append(DeltaBlock(config, layer, place, strategy))
            else:
                block = AttentionBlock(config, weights.layer(index), strategy)
                self._layers.append(_AttentionLayer(block, next(places)))
            loaded(index + 1)
        self._norm = prepare_norm(weights.norm(), config.norm_eps)
        self._head = strategy.prepare(weights.head())
        self._rotation = Rotation(config.rope, device, dtype)
        self.weight_bytes = weights.read_bytes

    def new_pool(self, pages: int, rows: int = 1) -> KvPool:
        """Return an empty pool for this model; ``rows`` counts places for recurrent states."""
        c, device, dtype = self.config, self.device, self.dtype
        recurrent = None
        if c.delta is not None:
            recurrent = RecurrentPool(c.delta, rows, device=device, dtype=dtype)
        return KvPool(
            c.attention_layers,
            pages,
            c.kv_heads,
            c.head_dim,
            device=device,
            dtype=dtype,
            recurrent=recurrent,
        )

    @torch.inference_mode()
    def forward(self, batch: ForwardBatch, pool: KvPool) -> Tensor:
        """Return the hidden states of all columns.

        Effects: keys and values of all columns are written to the pool at the batch's slots;
                 recurrent states are only read, and their records wait for a commit.
        """
        return self.states(batch, pool).hidden

    @torch.inference_mode()
    def states(self, batch: ForwardBatch, pool: KvPool, taps: Sequence[int] = ()) -> ColumnStates:
        """Return the hidden states of all columns and the streams after the layers ``taps``.

        Effects: as of ``forward``.
        """
        x = self._embedding[batch.token_ids]
        rotation = self._rotation.at(batch.positions)
        if pool.recurrent is not None:
            pool.recurrent.begin()
        streams = {}
        for index, layer in enumerate(self._layers):
            x = layer(x, rotation, batch, pool)
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


class _AttentionLayer:
    """A layer with its place in the pool of keys and values."""

    def __init__(self, block: AttentionBlock, place: int) -> None:
        self._block = block
        self._place = place

    def __call__(
        self, x: Tensor, rotation: tuple[Tensor, Tensor], batch: ForwardBatch, pool: KvPool
    ) -> Tensor:
        return self._block(x, rotation, batch, *pool.layers[self._place])
