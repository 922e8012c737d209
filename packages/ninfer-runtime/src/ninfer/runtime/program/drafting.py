"""A drafter's side of a program: what each sequence's drafter has read, and what it proposes.

Columns of a pending batch are held until the commit says how many of them stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ninfer.contract import ProgramShape, SequenceId
from ninfer.runtime.models.drafters import ContextRow, Drafter, Proposal, ProposalRow
from ninfer.runtime.models.kv_pool import KvPool
from ninfer.runtime.program.resident_set import ResidentSet
from ninfer.runtime.program.sequence import ResidentSequence


class _HeldColumns(NamedTuple):
    """Features of a pending row; ``drafts`` are right if all of them stay.

    The first ``columns`` features are theirs. With ``is_stored`` they lie where the row's next
    round finds them, else in a pass's output. A round that still drafts ahead puts ``wanted``
    drafts at ``place``.
    """

    features: Tensor
    columns: int
    drafts: tuple[int, ...] = ()
    is_stored: bool = False
    place: int = 0
    wanted: int = 0


class Drafting:
    """Feeds one drafter with what the target computes."""

    def __init__(
        self, drafter: Drafter, pool: KvPool, residents: ResidentSet, shape: ProgramShape
    ) -> None:
        self.drafter = drafter
        self._pool = pool
        self._residents = residents
        self._draft_limit = shape.draft_limit
        self._context_tokens = shape.context_tokens
        self._held: dict[SequenceId, _HeldColumns] = {}
        self._await: Callable[[], list[list[int]]] | None = None
        self._ahead: list[list[int]] = []

    def observe(self, resident: ResidentSequence, features: Tensor) -> None:
        """Read columns that just became part of a sequence, except for the last that must wait."""
        draft = resident.draft
        draft.extend(features)
        end = resident.frontier - self.drafter.lookahead
        if end <= draft.absorbed or draft.features is None:
            return
        known = draft.features[: end - draft.absorbed]
        self.drafter.absorb([self._context(resident, known, resident.ledger)], self._pool)
        draft.absorb_to(end)

    def hold(self, resident: ResidentSequence, features: Tensor) -> None:
        """Keep the features of provisional columns until they are settled."""
        self._held[resident.sequence] = _HeldColumns(features, len(features))

    def hold_stored(
        self, resident: ResidentSequence, features: Tensor, columns: int, place: int, wanted: int
    ) -> None:
        """Keep the first provisional columns of a row's store, which the round may draft after."""
        self._held[resident.sequence] = _HeldColumns(
            features, columns, is_stored=True, place=place, wanted=wanted
        )

    def await_ahead(self, drafts: Callable[[], list[list[int]]]) -> None:
        """Note how to have the drafts that the round of the held columns is still making."""
        self._await = drafts

    def settle(self, resident: ResidentSequence, accepted: int) -> None:
        """Add the accepted columns to their sequence; with all of them the drafts made ahead."""
        held = self._held.pop(resident.sequence, None)
        if held is None or not accepted:
            return
        draft, lookahead = resident.draft, self.drafter.lookahead
        drafts = self._drafts_after(held) if accepted == held.columns else ()
        if held.is_stored and self.drafter.drafts_ahead and (drafts or draft.features is None):
            # The round read every column; the last ones stay at hand to go on from.
            left = held.features[accepted - lookahead : accepted]
            draft.restart(resident.frontier - lookahead, left, drafts)
            return
        features = held.features[:accepted]
        draft.extend(features if held.is_stored else features.clone(), is_stored=held.is_stored)
        if drafts:
            draft.absorb_to(resident.frontier - lookahead)
            draft.drafts = drafts

    def close_round(self) -> None:
        """Wait for what the round still drafts, and forget every provisional column."""
        self._made_ahead()
        self._held.clear()

    def read_ahead(self, residents: Sequence[ResidentSequence]) -> None:
        """Read the columns of rows that their next round would not find in the store."""
        waiting = [
            resident
            for resident in residents
            if resident.draft.features is not None and not resident.draft.is_stored
        ]
        rows = [
            self._context(resident, self._unread(resident), resident.ledger) for resident in waiting
        ]
        if rows:
            self.drafter.absorb(rows, self._pool)
        for resident in waiting:
            resident.draft.absorb_to(resident.frontier)

    def supply(self, residents: Sequence[ResidentSequence], extents: Sequence[int]) -> None:
        """Make the drafts that rows can use and no round made ahead."""
        missing = [
            (resident, extent)
            for resident, extent in zip(residents, extents, strict=True)
            if extent and not resident.draft.drafts
        ]
        if not missing:
            return
        rows, wanted = [row for row, _ in missing], [extent for _, extent in missing]
        proposed = self.propose(rows, wanted).tokens.tolist()
        for resident, extent, tokens in zip(rows, wanted, proposed, strict=True):
            resident.draft.drafts = tuple(tokens[:extent])

    def propose(self, residents: Sequence[ResidentSequence], extents: Sequence[int]) -> Proposal:
        """Bring the drafter up to the frontiers and propose for every row."""
        rows = []
        for resident, extent in zip(residents, extents, strict=True):
            block = min(self._draft_limit, self._context_tokens - resident.frontier - 1)
            self._residents.reserve(resident, resident.frontier + 1 + block)
            features = self._unread(resident)
            rows.append(self._row(resident, features, resident.ledger, extent, block))
        proposal = self.drafter.propose(rows, self._pool)
        for resident in residents:
            resident.draft.absorb_to(resident.frontier - self.drafter.lookahead)
        return proposal

    def propose_ahead(
        self,
        residents: Sequence[ResidentSequence],
        licensed: Sequence[Sequence[int]],
        extents: Sequence[int],
    ) -> None:
        """Propose what follows tokens that are not committed yet; the drafts are held.

        Shapes: ``licensed`` are the tokens of the round, ``extents`` the drafts of the next one.
        """
        rows = []
        for resident, tokens, extent in zip(residents, licensed, extents, strict=True):
            held = self._held[resident.sequence].features[: len(tokens)]
            frontier = resident.frontier + len(tokens)
            self._residents.reserve(resident, frontier + extent)
            ledger = [*resident.ledger, *tokens]
            features = resident.draft.with_columns(held)
            rows.append(self._row(resident, features, ledger, extent, extent))
        if not rows:
            return
        proposed = self.drafter.propose(rows, self._pool).tokens.tolist()
        for resident, tokens, extent, drafts in zip(
            residents, licensed, extents, proposed, strict=True
        ):
            features = self._held[resident.sequence].features[: len(tokens)]
            made = tuple(drafts[:extent])
            self._held[resident.sequence] = _HeldColumns(features, len(tokens), made)

    def _drafts_after(self, held: _HeldColumns) -> tuple[int, ...]:
        return tuple(self._made_ahead()[held.place][: held.wanted]) if held.wanted else held.drafts

    def _made_ahead(self) -> list[list[int]]:
        if self._await is not None:
            self._ahead, self._await = self._await(), None
        return self._ahead

    def _unread(self, resident: ResidentSequence) -> Tensor:
        features = resident.draft.features
        if features is None:
            width, like = self.drafter.feature_width, self._pool.keys
            return torch.empty((0, width), dtype=like.dtype, device=like.device)
        return features

    def _row(
        self,
        resident: ResidentSequence,
        features: Tensor,
        ledger: Sequence[int],
        extent: int,
        block: int,
    ) -> ProposalRow:
        context = self._context(resident, features, ledger)
        return ProposalRow(context, ledger[-1], extent, block, resident.sampling)

    def _context(
        self, resident: ResidentSequence, features: Tensor, ledger: Sequence[int]
    ) -> ContextRow:
        start = resident.draft.absorbed
        following = ledger[start + 1 : start + 1 + len(features)]
        return ContextRow(start, features, following, resident.slots)
