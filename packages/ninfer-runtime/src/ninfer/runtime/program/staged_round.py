"""A round in two stages: Forward is launched, masks are filled meanwhile, Finish follows.

Source: specification 8 and 9; reference contract, section 3.1.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from ninfer.contract import MaskProvider, PendingRow, ProgramShape, RngPurpose, SpeculationCounts
from ninfer.ops import SamplingRow
from ninfer.runtime.models.kv_pool import KvPool
from ninfer.runtime.program.decode_round import RoundOutcome
from ninfer.runtime.program.drafting import Drafting
from ninfer.runtime.program.extents import draft_extent
from ninfer.runtime.program.mask_buffer import MaskBuffer, RoundMasks
from ninfer.runtime.program.resident_set import ResidentSet
from ninfer.runtime.program.round_input import RowNumbers
from ninfer.runtime.program.round_stages import RoundStages
from ninfer.runtime.program.sampler import meets_dead_end
from ninfer.runtime.program.sequence import ResidentSequence
from ninfer.runtime.program.unit_set import UnitSet


class _Rows(NamedTuple):
    """The rows of a round; ``drafts`` are None where Forward makes them."""

    residents: Sequence[ResidentSequence]
    remaining: Sequence[int]
    extents: list[int]
    drafts: list[tuple[int, ...]] | None


class StagedRound:
    """Implements: DecodeRound; with or without a drafter, eager or captured."""

    def __init__(
        self,
        residents: ResidentSet,
        units: UnitSet,
        stages: RoundStages,
        masks: MaskBuffer,
        pool: KvPool,
        drafting: Drafting | None,
        shape: ProgramShape,
    ) -> None:
        self._residents = residents
        self._units = units
        self._stages = stages
        self._stores = stages.store.unbind()
        self._masks = masks
        self._pool = pool
        self._drafting = drafting
        self._shape = shape
        self._is_ahead = drafting is not None and drafting.drafter.drafts_ahead
        # Drafts made ahead stand after the round's own, where its licensed tokens may end.
        self.columns = 1 + shape.draft_limit + (shape.draft_limit if self._is_ahead else 0)

    def run(
        self,
        residents: Sequence[ResidentSequence],
        remaining_tokens: Sequence[int],
        provider: MaskProvider | None,
    ) -> RoundOutcome:
        """Implements: DecodeRound.run.

        Effects: whatever fails after Forward was launched, the device is settled before it leaves.
        """
        started = time.perf_counter()
        rows = self._rows(residents, remaining_tokens)
        unit = self._units.unit(len(residents), self._reserve(residents))
        constrained = self._masks.constrained(provider, len(residents))
        self._write(rows, constrained)
        unit.forward()
        launched = time.perf_counter()
        try:
            masks, waited = self._fill(rows, provider, constrained)
            filled = time.perf_counter()
            unit.finish()
            self._units.stream.licensed.wait()
            pending = self._outcome(rows, masks)
        except BaseException:
            self._units.stream.settle()
            self._pool.drop()
            if self._drafting is not None:
                self._drafting.close_round()
            raise
        device_seconds = launched - started + time.perf_counter() - filled
        return RoundOutcome(pending, device_seconds, waited)

    def _rows(
        self, residents: Sequence[ResidentSequence], remaining_tokens: Sequence[int]
    ) -> _Rows:
        extents = [
            draft_extent(self._shape, len(resident.ledger), remaining)
            for resident, remaining in zip(residents, remaining_tokens, strict=True)
        ]
        if self._drafting is not None and not self._is_ahead:
            self._drafting.read_ahead(residents)
            return _Rows(residents, remaining_tokens, extents, None)
        if self._drafting is not None:
            self._drafting.supply(residents, extents)
        drafts = [
            resident.draft.drafts[:extent]
            for resident, extent in zip(residents, extents, strict=True)
        ]
        return _Rows(residents, remaining_tokens, [len(row) for row in drafts], drafts)

    def _reserve(self, residents: Sequence[ResidentSequence]) -> int:
        """Take the pages of the round and return the slots of its longest row."""
        reach = [
            min(resident.frontier + self.columns, self._shape.context_tokens)
            for resident in residents
        ]
        for resident, tokens in zip(residents, reach, strict=True):
            self._residents.reserve(resident, tokens)
        return max(reach)

    def _write(self, rows: _Rows, constrained: Sequence[int]) -> None:
        for place, resident in enumerate(rows.residents):
            draft = resident.draft
            ledger_tokens = len(resident.ledger)
            sampling = SamplingRow(
                resident.sampling,
                position=ledger_tokens,
                purpose=RngPurpose.DECODE,
                constrained=place in constrained,
                counts_row=resident.row,
            )
            numbers = RowNumbers(
                resident.anchor,
                resident.frontier,
                rows.extents[place],
                min(rows.remaining[place], self._shape.context_tokens - ledger_tokens),
                resident.row,
                draft.absorbed,
                0 if draft.features is None else len(draft.features),
            )
            own = () if rows.drafts is None else rows.drafts[place]
            self._units.input.write(place, sampling, numbers, own, resident.pages)
            if draft.is_stored or rows.drafts is None:
                # Forward reads them, or an earlier Finish did; then it writes over their place.
                draft.absorb_to(resident.frontier)
        self._units.input.upload(len(rows.residents))

    def _fill(
        self, rows: _Rows, provider: MaskProvider | None, constrained: Sequence[int]
    ) -> tuple[RoundMasks, float]:
        """Fill and send the masks, and return them with the seconds spent on waiting for drafts."""
        if provider is None or not constrained:
            return RoundMasks((None,) * len(rows.residents), None), 0.0
        drafts, waited = rows.drafts, 0.0
        if drafts is None:
            started = time.perf_counter()
            self._units.stream.drafted.wait()
            waited = time.perf_counter() - started
            found = self._units.drafts[: len(rows.residents)].tolist()
            drafts = [
                tuple(tokens[:extent]) for tokens, extent in zip(found, rows.extents, strict=True)
            ]
        return self._masks.fill(provider, drafts, self._stages.positions), waited

    def _outcome(self, rows: _Rows, masks: RoundMasks) -> list[PendingRow]:
        """Read the result and hold what the commit decides about."""
        positions = self._stages.positions
        pending = []
        if self._drafting is not None and self._is_ahead:
            self._drafting.await_ahead(self._ahead)
        results = self._units.result[: len(rows.residents)].tolist()
        for place, (resident, result) in enumerate(zip(rows.residents, results, strict=True)):
            accepted, status = result[positions : positions + 2]
            is_dead = meets_dead_end(place, status, accepted + 1, masks)
            tokens = () if is_dead else tuple(result[: accepted + 1])
            counts = SpeculationCounts(rows.extents[place], 0 if is_dead else accepted)
            pending.append(PendingRow(resident.sequence, tokens, is_dead, counts))
            if self._drafting is not None:
                columns = len(tokens) or 1
                left = rows.remaining[place] - len(tokens)
                wanted = 0
                if self._is_ahead:
                    wanted = draft_extent(self._shape, len(resident.ledger) + len(tokens), left)
                store = self._stores[resident.row]
                self._drafting.hold_stored(resident, store, columns, place, wanted)
        return pending

    def _ahead(self) -> list[list[int]]:
        """Wait for the drafts of the next round; what the host does until then costs nothing."""
        self._units.stream.ahead.wait()
        return self._units.ahead.tolist()
