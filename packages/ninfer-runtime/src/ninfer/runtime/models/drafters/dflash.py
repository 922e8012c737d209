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
from ninfer.runtime.models.drafters.drafter import (
    ContextRow,
    DraftKeys,
    PagedProposal,
    Proposal,
    ProposalRow,
)
from ninfer.runtime.models.drafters.dynamic_conv import BlockOrder, DynamicConv
from ninfer.runtime.models.drafters.head import DraftHead
from ninfer.runtime.models.forward_batch import ForwardBatch, RowInput, forward_batch
from ninfer.runtime.models.kv_pool import KvPool
from ninfer.runtime.models.norm import prepare_norm
from ninfer.runtime.models.paged_batch import clamped_places, paged_batch, slots_of
from ninfer.runtime.models.rope import Rotation
from ninfer.runtime.models.weights import WeightReader
from ninfer.runtime.models.window import seeing


class DflashDrafter:
    """Implements: Drafter; embedding and head are the target's.

    Math: c_t = norm_c(W_fc [streams after the target's layers at t]); every layer makes keys and
          values of its context from c_t. The block [anchor, mask · K] at positions F to F + K sees
          the context before F and all of itself, in a layer with a window w only keys t with
          |p − t| < w; the best token of head(norm(x)) in each mask's place is the draft for it.
    """

    backend = SpeculativeBackend.DFLASH
    lookahead = 0
    drafts_ahead = False

    def __init__(
        self, config: DrafterConfig, weights: WeightReader, target: Decoder, head: DraftHead
    ) -> None:
        shape = config.layers
        self.taps = config.target_layers
        self.feature_width = shape.hidden * len(self.taps)
        self._config = config
        self._target = target
        self._head = head
        fc = weights.read("fc.weight", (shape.hidden, self.feature_width))
        self._join = target.strategy.prepare(fc)
        self._context_norm = prepare_norm(
            weights.scale("hidden_norm.weight", shape.hidden), shape.norm_eps
        )
        self._layers = [self._layer(index, weights) for index in range(shape.layers)]
        self._windows = {config.window(index) for index in range(shape.layers)}
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
        positions = torch.cat([torch.arange(row.start, row.end) for row in rows])
        slots = torch.cat([row.slots.slots(row.start, row.end) for row in rows])
        features = torch.cat([row.features for row in rows])
        self._read(features, positions.to(pool.device), slots.to(pool.device), pool)

    @torch.inference_mode()
    def propose(self, rows: Sequence[ProposalRow], pool: KvPool) -> Proposal:
        """Implements: Drafter.propose; the contexts, then one pass over all blocks."""
        self.absorb([row.context for row in rows], pool)
        mask, wanted = self._config.mask_token, max(row.drafts for row in rows)
        inputs = [
            RowInput([row.anchor, *[mask] * row.block], row.context.end, row.context.slots)
            for row in rows
        ]
        columns = forward_batch(inputs, pool)
        firsts = [plan.first for plan in columns.rows]
        places = [
            [first + 1 + min(place, row.block - 1) for place in range(wanted)]
            for first, row in zip(firsts, rows, strict=True)
        ]
        order = _order(firsts, len(columns.token_ids), pool.device)
        keys = DraftKeys.of(rows, pool.device)
        return self._fill(columns, order, torch.tensor(places, device=pool.device), keys, pool)

    @torch.inference_mode()
    def propose_paged(self, rows: PagedProposal, pool: KvPool) -> Proposal:
        """Implements: Drafter.propose_paged.

        Effects: a row without columns gets a wrong entry for its anchor, which its block then
                 writes over.
        """
        read = clamped_places(rows.features.shape[1], rows.counts - 1)
        positions = rows.starts.unsqueeze(1) + read
        features = rows.features.gather(1, read.unsqueeze(-1).expand_as(rows.features))
        slots = slots_of(rows.pages, positions)
        self._read(features.flatten(0, 1), positions.flatten(), slots.flatten(), pool)
        places = clamped_places(rows.limit + 1, rows.blocks)
        anchors, frontiers = rows.keys.anchors.unsqueeze(1), (rows.starts + rows.counts)[:, None]
        tokens = torch.where(places == 0, anchors, self._config.mask_token)
        last = (frontiers + rows.blocks.unsqueeze(1)).expand_as(places)
        columns = paged_batch(tokens, frontiers + places, rows.pages, last=last)
        firsts = torch.arange(len(places), device=pool.device).unsqueeze(1) * places.shape[1]
        previous = firsts + (places - 1).clamp(min=0)
        order = BlockOrder(previous.flatten(), (places == 0).view(-1, 1))
        return self._fill(columns, order, firsts + places[:, 1:], rows.keys, pool)

    def _read(self, features: Tensor, positions: Tensor, slots: Tensor, pool: KvPool) -> None:
        """Write the entries of columns with these features at these slots."""
        context = self._context_norm(self._join(features))
        rotation = self._rotation.at(positions)
        for layer, (keys, values) in zip(self._layers, pool.layers, strict=True):
            layer.absorb(context, rotation, slots, keys, values)

    def _fill(
        self,
        columns: ForwardBatch,
        order: BlockOrder,
        places: Tensor,
        draft_keys: DraftKeys,
        pool: KvPool,
    ) -> Proposal:
        """Return the drafts in the columns ``places`` int64[B, K'] of one pass over all blocks."""
        views = {window: seeing(columns, window) for window in self._windows}
        batch = BlockBatch(columns, views, self._rotation.at(columns.positions), order)
        x = self._target.embed(columns.token_ids)
        for layer, (keys, values) in zip(self._layers, pool.layers, strict=True):
            x = layer(x, batch, keys, values)
        hidden = self._norm(x.index_select(0, places.flatten()))
        logits = self._head.logits(hidden)
        shape = (*places.shape, -1)
        return self._choose(draft_keys, hidden.view(shape), logits.view(shape))

    def _choose(self, keys: DraftKeys, hidden: Tensor, logits: Tensor) -> Proposal:
        """Return the drafts of all rows.

        Shapes: hidden dtype[B, K', hidden] and the head's logits [B, K', S] in the masks' places.
        """
        return Proposal(self._head.tokens(logits.argmax(-1)))

    def _layer(self, index: int, weights: WeightReader) -> BlockLayer:
        prefix, config = f"layers.{index}.", self._config
        convs = None
        if config.conv_group:
            convs = LayerConvs(
                self._conv(prefix + "attention_conv", weights),
                self._conv(prefix + "mlp_conv", weights),
            )
        layer, strategy = weights.attention_layer(prefix), self._target.strategy
        return BlockLayer(config.layers, layer, strategy, convs, config.window(index))

    def _conv(self, prefix: str, weights: WeightReader) -> DynamicConv:
        hidden, group = self._config.layers.hidden, self._config.conv_group
        return DynamicConv(prefix, hidden, group, weights, self._target.strategy)


def _order(firsts: Sequence[int], columns: int, device: torch.device) -> BlockOrder:
    is_first = torch.zeros((columns, 1), dtype=torch.bool)
    is_first[list(firsts)] = True
    previous = torch.arange(-1, columns - 1).clamp(min=0)
    return BlockOrder(previous.to(device), is_first.to(device))
