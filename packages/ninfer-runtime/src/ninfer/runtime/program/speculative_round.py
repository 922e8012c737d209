"""A round that verifies drafts: Forward over anchor and drafts, masks, Finish.

Source: specification 8 and 9.1; reference contract, section 3.1.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from ninfer.contract import MaskProvider, PendingRow, ProgramShape, SpeculationCounts
from ninfer.ops import SparseProposal
from ninfer.runtime.program.decode_forward import DecodeForward
from ninfer.runtime.program.decode_round import RoundOutcome
from ninfer.runtime.program.drafting import Drafting
from ninfer.runtime.program.extents import draft_extent
from ninfer.runtime.program.mask_buffer import MaskBuffer
from ninfer.runtime.program.resident_set import ResidentSet
from ninfer.runtime.program.sampler import Sampler
from ninfer.runtime.program.sequence import ResidentSequence


class _Drafts(NamedTuple):
    """The drafts of every row, and what they were drawn from where that is not one-hot.

    ``wait_seconds`` passed until drafts of this round were in host memory.
    """

    tokens: list[tuple[int, ...]]
    distribution: SparseProposal | None = None
    wait_seconds: float = 0.0


class SpeculativeRound:
    """Implements: DecodeRound; a row without room for drafts takes one ordinary step."""

    def __init__(
        self,
        residents: ResidentSet,
        forward: DecodeForward,
        masks: MaskBuffer,
        sampler: Sampler,
        drafting: Drafting,
        shape: ProgramShape,
    ) -> None:
        self._residents = residents
        self._forward = forward
        self._masks = masks
        self._sampler = sampler
        self._drafting = drafting
        self._shape = shape
        # Drafts made ahead stand after the round's own, where its licensed tokens may end.
        ahead = shape.draft_limit if drafting.drafter.drafts_ahead else 0
        self.columns = 1 + shape.draft_limit + ahead

    def run(
        self,
        residents: Sequence[ResidentSequence],
        remaining_tokens: Sequence[int],
        provider: MaskProvider | None,
    ) -> RoundOutcome:
        """Implements: DecodeRound.run."""
        started = time.perf_counter()
        drafts = self._drafts(residents, remaining_tokens)
        columns = [
            [resident.anchor, *tokens]
            for resident, tokens in zip(residents, drafts.tokens, strict=True)
        ]
        output = self._forward(self._residents.new_columns(residents, columns))
        launched = time.perf_counter()
        masks = self._masks.fill(provider, drafts.tokens)
        licensed = self._sampler.accept(
            output.logits, residents, masks, drafts.tokens, drafts.distribution
        )
        rows = []
        for row, (resident, tokens) in enumerate(zip(residents, licensed, strict=True)):
            self._drafting.hold(resident, output.features_of(row, len(columns[row])))
            rows.append(_pending_row(resident, drafts.tokens[row], tokens))
        verified = time.perf_counter()
        if self._drafting.drafter.drafts_ahead:
            self._draft_ahead(residents, remaining_tokens, licensed)
        device_seconds = launched - started + time.perf_counter() - verified
        # Only masks need drafts in host memory; otherwise the wait is the device's.
        waited = drafts.wait_seconds if masks.words is not None else 0.0
        return RoundOutcome(rows, device_seconds - waited, waited)

    def _drafts(
        self, residents: Sequence[ResidentSequence], remaining_tokens: Sequence[int]
    ) -> _Drafts:
        """Return the drafts made ahead, and make those that are missing."""
        extents = [
            draft_extent(self._shape, len(resident.ledger), remaining)
            for resident, remaining in zip(residents, remaining_tokens, strict=True)
        ]
        drafts = [
            resident.draft.drafts[:extent]
            for resident, extent in zip(residents, extents, strict=True)
        ]
        missing = [b for b, extent in enumerate(extents) if extent and not drafts[b]]
        if not missing:
            return _Drafts(drafts)
        wanted = [extents[b] for b in missing]
        proposal = self._drafting.propose([residents[b] for b in missing], wanted)
        proposed = time.perf_counter()
        proposed_tokens = proposal.tokens.tolist()
        waited = time.perf_counter() - proposed
        for b, tokens in zip(missing, proposed_tokens, strict=True):
            drafts[b] = tuple(tokens[: extents[b]])
        law = proposal.distribution
        spread = None if law is None else _spread(law, missing, len(residents))
        return _Drafts(drafts, spread, waited)

    def _draft_ahead(
        self,
        residents: Sequence[ResidentSequence],
        remaining_tokens: Sequence[int],
        licensed: Sequence[Sequence[int] | None],
    ) -> None:
        """Make the next round's drafts of every row that will have room for some."""
        rows: list[ResidentSequence] = []
        tokens: list[Sequence[int]] = []
        extents: list[int] = []
        for resident, remaining, taken in zip(residents, remaining_tokens, licensed, strict=True):
            if taken is None:
                continue
            extent = draft_extent(
                self._shape, len(resident.ledger) + len(taken), remaining - len(taken)
            )
            if extent:
                rows.append(resident)
                tokens.append(taken)
                extents.append(extent)
        self._drafting.propose_ahead(rows, tokens, extents)


def _pending_row(
    resident: ResidentSequence, drafts: Sequence[int], licensed: Sequence[int] | None
) -> PendingRow:
    accepted = 0 if licensed is None else len(licensed) - 1
    return PendingRow(
        resident.sequence,
        () if licensed is None else tuple(licensed),
        licensed is None,
        SpeculationCounts(len(drafts), accepted),
    )


def _spread(part: SparseProposal, rows: Sequence[int], total: int) -> SparseProposal:
    """Return a distribution over all rows; those that are not listed propose nothing."""
    if len(rows) == total:
        return part
    spread = []
    for tensor in part:
        whole = tensor.new_zeros((total, *tensor.shape[1:]))
        whole[list(rows)] = tensor
        spread.append(whole)
    return SparseProposal(*spread)
