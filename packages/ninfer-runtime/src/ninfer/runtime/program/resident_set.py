"""Which sequences are resident, in which row, on which pages.

Owns physical identity: sequence id, row and pages are three different things. Computes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import torch
from torch import Tensor

from ninfer.contract import (
    IntegrityError,
    ProgramShape,
    ProgramUsage,
    ResumeRoute,
    RowMismatch,
    SequenceId,
    SequenceRequest,
)
from ninfer.runtime.models.forward_batch import RowInput
from ninfer.runtime.models.kv_group import KvGroup
from ninfer.runtime.models.kv_pool import PAGE_TOKENS
from ninfer.runtime.program.kv_room import KvRoom, pages_for
from ninfer.runtime.program.prefix_reuse import PrefixReuse
from ninfer.runtime.program.prefix_start import PrefixStart
from ninfer.runtime.program.recurrent_checkpoints import RecurrentCheckpoints
from ninfer.runtime.program.resume import PausedSequence
from ninfer.runtime.program.sequence import ResidentSequence


class ResidentSet:
    """Rows and pages of the sequences in memory.

    ``lookahead`` is how many tokens after a column a drafter's entry depends on, None without one;
    ``checkpoints`` are those of a hybrid model.
    """

    def __init__(
        self,
        pool: KvGroup,
        shape: ProgramShape,
        device: torch.device,
        lookahead: int | None,
        checkpoints: RecurrentCheckpoints | None,
    ) -> None:
        self._pool = pool
        self._device = device
        self._checkpoints = checkpoints
        self._room = KvRoom(pool, shape.kv_tokens // PAGE_TOKENS, checkpoints)
        self._reuse = PrefixReuse(self._room, checkpoints, lookahead, shape.prefill_chunk_tokens)
        self._rows = shape.rows
        self._free_rows = list(reversed(range(shape.rows)))
        self._residents: dict[SequenceId, ResidentSequence] = {}
        self._ids = count(1)

    def get(self, sequence: SequenceId) -> ResidentSequence:
        """Return a resident sequence.

        Raises: RowMismatch — there is none with this id.
        """
        found = self._residents.get(sequence)
        if found is None:
            raise RowMismatch(f"sequence {sequence}: is not resident")
        return found

    @property
    def usage(self) -> ProgramUsage:
        """Return rows, pages and recurrent states in use."""
        usage = ProgramUsage(
            rows_used=len(self._residents),
            kv_used_pages=self._room.used_pages,
            kv_capacity_pages=self._room.capacity_pages,
            kv_cached_pages=self._room.prefixes.pages,
            page_tokens=PAGE_TOKENS,
        )
        if self._checkpoints is None:
            return usage
        return replace(
            usage,
            state_used_slots=len(self._residents) + self._checkpoints.kept,
            state_capacity_slots=self._rows + self._checkpoints.capacity,
        )

    def has_room(self, tokens: int) -> bool:
        """Return whether a row and pages for a new sequence of so many tokens can be had."""
        return bool(self._free_rows) and pages_for(tokens) <= self._room.available_pages

    def open(self, request: SequenceRequest) -> ResidentSequence:
        """Take a row and pages for a prompt, on top of the longest cached prefix.

        Effects: the frontier stands after the reused tokens; a prompt that is cached whole, with
                 its final hidden state, has nothing left to compute.
        Raises:  IntegrityError — there is no room.
        """
        self._require_row()
        prompt = list(request.token_ids)
        start, places = self._reuse.find(request, prompt, self._residents.values(), samples=True)
        resident = self._admit(request, prompt, len(prompt), start)
        resident.places, resident.final_hidden = places, start.final_hidden
        return resident

    def reserve(self, resident: ResidentSequence, tokens: int) -> None:
        """Give a sequence pages for so many tokens in all.

        Raises: IntegrityError — there is no room.
        """
        resident.add_pages(self._room.grow(resident.pages, tokens))

    def new_columns(
        self, residents: Sequence[ResidentSequence], columns: Sequence[Sequence[int]]
    ) -> list[RowInput]:
        """Reserve pages for tokens after each frontier and return the rows of a pass over them."""
        rows = []
        for resident, tokens in zip(residents, columns, strict=True):
            self.reserve(resident, resident.frontier + len(tokens))
            rows.append(RowInput(tokens, resident.frontier, resident.slots, resident.row))
        return rows

    def count_reservable(self, wanted: Sequence[tuple[ResidentSequence, int]]) -> int:
        """Return how many reservations, counted from the first, fit together."""
        available = self._room.available_pages
        for fitting, (resident, tokens) in enumerate(wanted):
            available -= max(0, pages_for(tokens) - len(resident.pages))
            if available < 0:
                return fitting
        return len(wanted)

    def mark(self, resident: ResidentSequence) -> None:
        """Let others start where a sequence stands, as far as that takes a checkpoint."""
        self._reuse.mark(resident)

    def close(self, resident: ResidentSequence, *, marks: bool = True) -> None:
        """Take a sequence out; what it computed stays as a cached prefix if its request allows.

        With ``marks`` a hybrid's can be continued from its frontier.
        """
        self._reuse.leave(resident, marks=marks)
        del self._residents[resident.sequence]
        self._free_rows.append(resident.row)

    def pause(self, resident: ResidentSequence, route: ResumeRoute) -> PausedSequence:
        """Take a sequence out and return what brings it back.

        Raises: RowMismatch — the route is NONE.
        """
        if route is ResumeRoute.NONE:
            raise RowMismatch(f"sequence {resident.sequence}: a pause needs a route")
        paused = PausedSequence(
            resident.request,
            tuple(resident.ledger),
            resident.frontier,
            max(resident.frontier, resident.replay_end),
            resident.final_hidden,
            None,
        )
        if route is ResumeRoute.SNAPSHOT:
            paused.saved = self._pool.save(self._slots(resident), resident.row)
            paused.draft = resident.draft.moved_to(torch.device("cpu"))
        # A copy brings the sequence back; one more on the device would cost another its place.
        self.close(resident, marks=route is ResumeRoute.REPLAY)
        return paused

    def snapshot_bytes(self, resident: ResidentSequence) -> int:
        """Return the host bytes of a SNAPSHOT taken now."""
        tokens = resident.frontier * self._pool.token_bytes
        return tokens + self._pool.row_bytes + resident.draft.host_bytes

    def resume(self, paused: PausedSequence) -> ResidentSequence:
        """Take a row and pages for a paused sequence.

        Effects: a SNAPSHOT is written back; a REPLAY starts after the longest cached prefix.
        Raises:  IntegrityError — there is no room.
        """
        self._require_row()
        ledger, goal = list(paused.ledger), paused.goal_tokens
        start, places = PrefixStart.nowhere(), tuple[int, ...]()
        if paused.saved is None:
            request, others = paused.request, self._residents.values()
            start, places = self._reuse.find(request, ledger[:goal], others, samples=False)
        resident = self._admit(paused.request, ledger, max(goal, 1), start)
        resident.replay_end, resident.places = goal, places
        resident.final_hidden = paused.final_hidden
        if paused.saved is not None:
            resident.frontier = paused.frontier
            self._pool.restore(self._slots(resident), resident.row, paused.saved)
            resident.draft = paused.draft.moved_to(self._device)
        return resident

    def _require_row(self) -> None:
        if not self._free_rows:
            raise IntegrityError("rows: every one is taken")

    def _slots(self, resident: ResidentSequence) -> Tensor:
        return resident.slots.slots(0, resident.frontier)

    def _admit(
        self, request: SequenceRequest, ledger: list[int], tokens: int, start: PrefixStart
    ) -> ResidentSequence:
        """Take a row, and pages for so many tokens, of which those of the start are computed."""
        pages, checkpoints = self._reuse.take(start, tokens)
        resident = ResidentSequence(
            SequenceId(next(self._ids)),
            self._free_rows.pop(),
            request,
            ledger,
            start.tokens,
            pages,
            draft=start.draft,
            checkpoints=checkpoints,
        )
        self._residents[resident.sequence] = resident
        self._pool.reset(resident.row)
        self._reuse.enter(start, resident.row)
        return resident
