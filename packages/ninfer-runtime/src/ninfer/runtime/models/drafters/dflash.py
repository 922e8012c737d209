"""Drafters that fill a block of masks in one pass over the target's inner streams.

Source: reference contract, section 3.3; the names are those of the published drafters.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ninfer.contract import SpeculativeBackend
from ninfer.runtime.models.decoder import Decoder
from ninfer.runtime.models.drafters.block_layer import BlockBatch, BlockLayer, LayerConvs
from ninfer.runtime.models.drafters.config import DrafterConfig
from ninfer.runtime.models.drafters.drafter import ContextRow, Proposal, ProposalRow
from ninfer.runtime.models.drafters.dynamic_conv import DynamicConv
from ninfer.runtime.models.forward_batch import ForwardBatch, RowInput, forward_batch
from ninfer.runtime.models.kv_pool import KvPool
from ninfer.runtime.models.norm import prepare_norm
from ninfer.runtime.models.rope import Rotation
from ninfer.runtime.models.weights import WeightReader


class DflashDrafter:
    """Implements: Drafter; embedding and head are the target's.

    Math: c_t = norm_c(W_fc [streams after the target's layers at t]); every layer makes keys and
          values of its context from c_t. The block [anchor, mask · K] at positions F to F + K sees
          the context before F and all of itself; the best token of head(norm(x)) in each mask's
          place is the draft for that place.
    """

    backend = SpeculativeBackend.DFLASH
    lookahead = 0
    drafts_ahead = False

    def __init__(
        self, config: DrafterConfig, weights: WeightReader, target: Decoder, token_domain: int
    ) -> None:
        shape = config.layers
        self.taps = config.target_layers
        self.feature_width = shape.hidden * len(self.taps)
        self._config = config
        self._target = target
        self._token_domain = token_domain
        fc = weights.read("fc.weight", (shape.hidden, self.feature_width))
        self._join = target.strategy.prepare(fc)
        self._context_norm = prepare_norm(
            weights.scale("hidden_norm.weight", shape.hidden), shape.norm_eps
        )
        self._layers = [self._layer(index, weights) for index in range(shape.layers)]
        self._norm = prepare_norm(weights.scale("norm.weight", shape.hidden), shape.norm_eps)
        self._rotation = Rotation(shape.rope, target.device, target.dtype)
        self.weight_bytes = weights.read_bytes

    def new_pool(self, pages: int) -> KvPool:
        """Implements: Drafter.new_pool."""
        c, target = self._config.layers, self._target
        return KvPool(
            c.layers, pages, c.kv_heads, c.head_dim, device=target.device, dtype=target.dtype
        )

    @torch.inference_mode()
    def absorb(self, rows: Sequence[ContextRow], pool: KvPool) -> None:
        """Implements: Drafter.absorb."""
        rows = [row for row in rows if len(row.features)]
        if not rows:
            return
        context = self._context_norm(self._join(torch.cat([row.features for row in rows])))
        positions = torch.cat([torch.arange(row.start, row.end) for row in rows])
        slots = torch.cat([row.slots.slots(row.start, row.end) for row in rows]).to(pool.device)
        rotation = self._rotation.at(positions.to(pool.device))
        for layer, (keys, values) in zip(self._layers, pool.layers, strict=True):
            layer.absorb(context, rotation, slots, keys, values)

    @torch.inference_mode()
    def propose(self, rows: Sequence[ProposalRow], pool: KvPool) -> Proposal:
        """Implements: Drafter.propose; the contexts, then one pass over all blocks."""
        self.absorb([row.context for row in rows], pool)
        hidden = self._blocks(rows, pool)
        logits = self._target.logits(hidden.flatten(0, 1))[:, : self._token_domain]
        return self._choose(rows, hidden, logits.view(*hidden.shape[:2], -1))

    def _choose(self, rows: Sequence[ProposalRow], hidden: Tensor, logits: Tensor) -> Proposal:
        """Return the drafts of all rows.

        Shapes: hidden dtype[B, K', hidden] and logits float32[B, K', V] in the masks' places.
        """
        return Proposal(logits.argmax(-1))

    def _blocks(self, rows: Sequence[ProposalRow], pool: KvPool) -> Tensor:
        """Return the final hidden states in the places of the wanted drafts, [B, K', hidden]."""
        mask = self._config.mask_token
        inputs = [
            RowInput([row.anchor, *[mask] * row.block], row.context.end, row.context.slots)
            for row in rows
        ]
        columns = forward_batch(inputs, pool)
        firsts = [plan.first for plan in columns.rows]
        batch = BlockBatch(
            _seeing_everything(columns),
            self._rotation.at(columns.positions),
            _marks(firsts, len(columns.token_ids), pool.device),
        )
        x = self._target.embed(columns.token_ids)
        for layer, (keys, values) in zip(self._layers, pool.layers, strict=True):
            x = layer(x, batch, keys, values)
        wanted = max(row.drafts for row in rows)
        places = [
            [first + 1 + min(place, row.block - 1) for place in range(wanted)]
            for first, row in zip(firsts, rows, strict=True)
        ]
        chosen = torch.tensor(places, device=pool.device)
        return self._norm(x.index_select(0, chosen.flatten())).view(*chosen.shape, -1)

    def _layer(self, index: int, weights: WeightReader) -> BlockLayer:
        prefix, config = f"layers.{index}.", self._config
        convs = None
        if config.conv_group:
            convs = LayerConvs(
                self._conv(prefix + "attention_conv", weights),
                self._conv(prefix + "mlp_conv", weights),
            )
        layer = weights.attention_layer(prefix)
        return BlockLayer(config.layers, layer, self._target.strategy, convs)

    def _conv(self, prefix: str, weights: WeightReader) -> DynamicConv:
        hidden, group = self._config.layers.hidden, self._config.conv_group
        return DynamicConv(prefix, hidden, group, weights, self._target.strategy)


def _seeing_everything(columns: ForwardBatch) -> ForwardBatch:
    """Return the same columns, each of which sees its row's whole length."""
    return columns._replace(rows=tuple(plan._replace(mask=None) for plan in columns.rows))


def _marks(firsts: Sequence[int], columns: int, device: torch.device) -> Tensor:
    marks = torch.zeros((columns, 1), dtype=torch.bool)
    marks[list(firsts)] = True
    return marks.to(device)
