"""What a round computes, in two stages over tensors of fixed shapes: Forward and Finish.

The same functions run eagerly and are captured into graphs; nothing here waits for the device.
Source: specification 8 and 9.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from ninfer.contract import ProgramShape
from ninfer.ops import (
    AcceptedTokens,
    SparseProposal,
    masked_sampling,
    reserve_workspace,
    speculative_acceptance,
)
from ninfer.runtime.models.decoder import Decoder
from ninfer.runtime.models.drafters import Drafter, DraftKeys, PagedProposal
from ninfer.runtime.models.kv_pool import KvPool
from ninfer.runtime.models.paged_batch import clamped_places, paged_batch
from ninfer.runtime.program.round_input import RoundRows


class Verified(NamedTuple):
    """What Forward leaves for Finish.

    Shapes: logits float32[B, P, V]; features dtype[B, P, width], what a drafter reads; drafts
            int64[B, K]; ``distribution`` is what they were drawn from where that is not one-hot.
    """

    logits: Tensor
    features: Tensor
    drafts: Tensor
    distribution: SparseProposal | None


class RoundStages:
    """Forward and Finish of one model, with its drafter if it has one.

    Shapes: store dtype[rows, P, width], the features of every pool row's last round; counts
            int32[rows, V] the penalties' table.
    """

    def __init__(
        self,
        decoder: Decoder,
        pool: KvPool,
        draft_pool: KvPool,
        shape: ProgramShape,
        counts: Tensor,
        drafter: Drafter | None,
    ) -> None:
        self._decoder = decoder
        self._pool = pool
        self._shape = shape
        self._counts = counts
        self._drafter = drafter
        self._draft_pool = draft_pool
        self._taps = () if drafter is None else drafter.taps
        self.positions = shape.draft_limit + 1
        width = 0 if drafter is None else drafter.feature_width
        self.store = torch.zeros(
            (shape.rows, self.positions, width), dtype=decoder.dtype, device=decoder.device
        )
        self._workspace = reserve_workspace(shape.rows * self.positions, decoder.device)

    @property
    def result_words(self) -> int:
        """Return the int64 numbers of one row's result."""
        return self.positions + 2

    @torch.inference_mode()
    def forward(self, rows: RoundRows, publish: Callable[[Tensor], None]) -> Verified:
        """Draft where drafts are made now, and run the target over anchors and drafts.

        Effects: ``publish`` gets new drafts int64[B, K] before the target runs; keys, values and
                 features of all columns are written, recurrent states are only read.
        """
        drafts, distribution = rows.drafts, None
        if self._drafter is not None and not self._drafter.drafts_ahead:
            proposal = self._drafter.propose_paged(self._block(rows), self._draft_pool)
            drafts, distribution = proposal.tokens, proposal.distribution
            publish(drafts)
        places = clamped_places(self.positions, rows.extents)
        tokens = torch.cat((rows.anchors.unsqueeze(1), drafts), dim=1).gather(1, places)
        batch = paged_batch(
            tokens,
            rows.frontiers.unsqueeze(1) + places,
            rows.pages,
            pool_rows=None if self._pool.recurrent is None else rows.pool_rows,
        )
        states = self._decoder.states(batch, self._pool, self._taps)
        shape = (rows.row_count, self.positions, -1)
        logits = self._decoder.logits(states.hidden).view(shape)
        features = states.features.view(shape)
        if self._drafter is not None:
            self.store.index_copy_(0, rows.pool_rows, features)
        return Verified(logits[..., : self._shape.token_domain], features, drafts, distribution)

    @torch.inference_mode()
    def finish(
        self,
        rows: RoundRows,
        verified: Verified,
        masks: Tensor,
        publish: Callable[[Tensor], None],
    ) -> Tensor | None:
        """Choose tokens, and return what was drafted after them where drafts are made ahead.

        Shapes:  masks int32[B, P, W], read in rows whose record says constrained; the drafts
                 int64[B, K].
        Effects: ``publish`` gets the result int64[B, words] before anything is drafted: P licensed
                 tokens, how many drafts were accepted, and the status.
        """
        if self._drafter is None:
            sampled = masked_sampling(
                verified.logits[:, 0],
                rows.sampling,
                masks[:, 0],
                self._counts,
                workspace=self._workspace,
            )
            none = torch.zeros_like(sampled.tokens)
            publish(torch.stack((sampled.tokens, none, sampled.status.long()), dim=1))
            return None
        accepted = speculative_acceptance(
            verified.logits,
            rows.sampling,
            verified.drafts.contiguous(),
            rows.extents.to(torch.int32),
            proposal=verified.distribution,
            masks=masks,
            counts=self._counts,
            workspace=self._workspace,
        )
        taken, status = accepted.accepted.long(), accepted.status.long()
        publish(torch.cat((accepted.tokens, taken.unsqueeze(1), status.unsqueeze(1)), dim=1))
        if not self._drafter.drafts_ahead:
            return None
        ahead = self._ahead(rows, verified, accepted, taken)
        return self._drafter.propose_paged(ahead, self._draft_pool).tokens

    def _block(self, rows: RoundRows) -> PagedProposal:
        """Return what a block drafter is asked before the target runs."""
        limit = self._shape.draft_limit
        last_column = self._shape.context_tokens - 1
        return PagedProposal(
            self._keys(rows, rows.anchors),
            self.store.index_select(0, rows.pool_rows),
            rows.absorbed,
            rows.pending,
            rows.drafts,
            rows.extents,
            (last_column - rows.frontiers).clamp(max=limit),
            rows.pages,
            limit,
        )

    def _ahead(
        self, rows: RoundRows, verified: Verified, accepted: AcceptedTokens, taken: Tensor
    ) -> PagedProposal:
        """Return what a drafter is asked that goes on from the tokens just licensed."""
        limit = self._shape.draft_limit
        drafts = (rows.rooms - taken - 2).clamp(min=0, max=limit)
        anchors = accepted.tokens.gather(1, taken.unsqueeze(1)).squeeze(1)
        return PagedProposal(
            self._keys(rows, anchors),
            verified.features,
            rows.frontiers,
            taken + 1,
            accepted.tokens,
            drafts,
            drafts,
            rows.pages,
            limit,
        )

    def _keys(self, rows: RoundRows, anchors: Tensor) -> DraftKeys:
        sampling = rows.sampling
        return DraftKeys(anchors, rows.frontiers, sampling.seeds, sampling.temperatures.float())
