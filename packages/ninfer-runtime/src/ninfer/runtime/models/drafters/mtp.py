"""One more decoder layer that predicts the token after next, chained on its own hidden state.

Source: specification 8.4; reference contract, section 3.2; the names are Qwen's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

import torch
from torch import Tensor

from ninfer.contract import SpeculativeBackend
from ninfer.runtime.models.attention_block import AttentionBlock
from ninfer.runtime.models.config import DecoderConfig
from ninfer.runtime.models.decoder import Decoder
from ninfer.runtime.models.drafters.drafter import (
    ContextRow,
    PagedProposal,
    Proposal,
    ProposalRow,
)
from ninfer.runtime.models.drafters.head import DraftHead
from ninfer.runtime.models.forward_batch import ForwardBatch, RowInput, forward_batch
from ninfer.runtime.models.kv_pool import KvPool
from ninfer.runtime.models.norm import Norm, prepare_norm
from ninfer.runtime.models.paged_batch import clamped_places, paged_batch
from ninfer.runtime.models.rope import Rotation
from ninfer.runtime.models.weights import WeightReader


class MtpDrafter:
    """Implements: Drafter; embedding and head are the target's.

    Math: m_t = norm(block(W_fc [norm_e(embed(x_{t+1})), norm_h(h_t)])) with the target's final
          hidden h_t; draft 0 is the best token of head(m_{F−1}), and with d_i in place of x and m
          in place of h the next step gives d_{i+1}. Entry t of the block's keys and values belongs
          to (h_t, x_{t+1}).
    """

    backend = SpeculativeBackend.MTP
    taps = ()
    lookahead = 1
    drafts_ahead = True

    def __init__(
        self, config: DecoderConfig, weights: WeightReader, target: Decoder, head: DraftHead
    ) -> None:
        width, eps = config.hidden, config.norm_eps
        self.feature_width = width
        self._config = config
        self._target = target
        self._head = head

        def norm(name: str) -> Norm:
            return prepare_norm(weights.scale(f"mtp.{name}.weight", width), eps)

        self._token_norm = norm("pre_fc_norm_embedding")
        self._hidden_norm = norm("pre_fc_norm_hidden")
        self._join = target.strategy.prepare(weights.read("mtp.fc.weight", (width, 2 * width)))
        layer = weights.attention_layer("mtp.layers.0.")
        self._block = AttentionBlock(config, layer, target.strategy)
        self._norm = norm("norm")
        self._rotation = Rotation(config.rope, target.device, target.dtype)
        self.weight_bytes = weights.read_bytes

    def new_pool(self, pages: int) -> KvPool:
        """Implements: Drafter.new_pool."""
        c, target = self._config, self._target
        return KvPool(1, pages, c.kv_heads, c.head_dim, device=target.device, dtype=target.dtype)

    @torch.inference_mode()
    def absorb(self, rows: Sequence[ContextRow], pool: KvPool) -> None:
        """Implements: Drafter.absorb."""
        self._align(rows, pool)

    @torch.inference_mode()
    def propose(self, rows: Sequence[ProposalRow], pool: KvPool) -> Proposal:
        """Implements: Drafter.propose; the alignment pass, then one step per further draft."""
        contexts = [row.context for row in rows]
        ends = accumulate(len(context.features) for context in contexts)
        last = torch.tensor([end - 1 for end in ends], device=pool.device)
        hidden = self._align(contexts, pool).index_select(0, last)

        def columns(step: int) -> ForwardBatch:
            # A row that wants fewer goes on in its last place, where nothing reads it.
            inputs = [
                RowInput((0,), row.context.end + min(step, row.drafts) - 1, row.context.slots)
                for row in rows
            ]
            return forward_batch(inputs, pool)

        return self._chain(hidden, max(row.drafts for row in rows), columns, pool)

    @torch.inference_mode()
    def propose_paged(self, rows: PagedProposal, pool: KvPool) -> Proposal:
        """Implements: Drafter.propose_paged; every row has at least one column."""
        places = clamped_places(rows.features.shape[1], rows.counts - 1)
        tokens = rows.following.gather(1, places)
        batch = paged_batch(tokens, rows.starts.unsqueeze(1) + places, rows.pages)
        features = rows.features.gather(1, places.unsqueeze(-1).expand_as(rows.features))
        aligned = self._run(tokens.flatten(), features.flatten(0, 1), batch, pool)
        ends = torch.arange(len(rows.counts), device=pool.device) * places.shape[1] + rows.counts
        hidden = aligned.index_select(0, ends - 1)
        first = rows.starts + rows.counts - 1

        def columns(step: int) -> ForwardBatch:
            positions = (first + rows.drafts.clamp(min=1, max=step)).unsqueeze(1)
            return paged_batch(positions, positions, rows.pages)

        return self._chain(hidden, rows.limit, columns, pool)

    def _chain(
        self, hidden: Tensor, drafts: int, columns: Callable[[int], ForwardBatch], pool: KvPool
    ) -> Proposal:
        """Draft from one hidden state a row; ``columns`` says where each further step writes."""
        found = [self._head.best(hidden)]
        for step in range(1, drafts):
            hidden = self._run(found[-1], hidden, columns(step), pool)
            found.append(self._head.best(hidden))
        return Proposal(torch.stack(found, dim=1))

    def _align(self, rows: Sequence[ContextRow], pool: KvPool) -> Tensor:
        """Write the entries of columns and return their hidden states, row after row."""
        tokens = torch.tensor([token for row in rows for token in row.next_tokens])
        features = torch.cat([row.features for row in rows])
        inputs = [RowInput(row.next_tokens, row.start, row.slots) for row in rows]
        return self._run(tokens.to(pool.device), features, forward_batch(inputs, pool), pool)

    def _run(self, tokens: Tensor, hidden: Tensor, batch: ForwardBatch, pool: KvPool) -> Tensor:
        embedded = self._token_norm(self._target.embed(tokens))
        x = self._join(torch.cat((embedded, self._hidden_norm(hidden)), dim=-1))
        rotation = self._rotation.at(batch.positions)
        return self._norm(self._block(x, rotation, batch, pool.keys[0], pool.values[0]))
