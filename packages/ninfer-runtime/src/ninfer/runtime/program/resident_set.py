"""Which sequences are resident, in which row, on which pages.

Owns physical identity: sequence id, row and pages are three different things. Computes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import numpy as np
from torch import Tensor

from ninfer.contract import (
    IntegrityError,
    ProgramUsage,
    ResumeRoute,
    RowMismatch,
    SequenceId,
    SequenceRequest,
)
from ninfer.runtime.models.kv_pool import PAGE_TOKENS, KvPool
from ninfer.runtime.program.kv_room import KvRoom, pages_for
from ninfer.runtime.program.prefix_cache import CachedPrefix, PrefixMatch
from ninfer.runtime.program.resume import PausedSequence
from ninfer.runtime.program.sequence import ResidentSequence


class ResidentSet:
    """Rows and pages of the sequences in memory."""

    def __init__(self, pool: KvPool, pages: int, rows: int) -> None:
        self._pool = pool
        self._room = KvRoom(pool, pages)
        self._rows = rows
        self._free_rows = list(reversed(range(rows)))
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
        """Return rows and pages in use."""
        return ProgramUsage(
            rows_used=len(self._residents),
            kv_used_pages=self._room.used_pages,
            kv_capacity_pages=self._room.capacity_pages,
            kv_cached_pages=self._room.prefixes.pages,
            page_tokens=PAGE_TOKENS,
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
        match = self._find_prefix(request, prompt)
        if match is None:
            return self._admit(request, prompt, self._room.take(len(prompt)))
        is_whole = match.shared_tokens == len(prompt)
        hidden = match.prefix.final_hidden.get(len(prompt)) if is_whole else None
        reused = match.shared_tokens
        if is_whole and hidden is None:
            # The last token is computed again: its hidden state is what samples.
            reused -= 1
        pages = self._room.take_with_prefix(len(prompt), match.prefix, reused)
        return self._admit(request, prompt, pages, frontier=reused, final_hidden=hidden)

    def reserve(self, resident: ResidentSequence, tokens: int) -> None:
        """Give a sequence pages for so many tokens in all.

        Raises: IntegrityError — there is no room.
        """
        resident.add_pages(self._room.grow(resident.pages, tokens))

    def count_reservable(self, wanted: Sequence[tuple[ResidentSequence, int]]) -> int:
        """Return how many reservations, counted from the first, fit together."""
        available = self._room.available_pages
        for fitting, (resident, tokens) in enumerate(wanted):
            available -= max(0, pages_for(tokens) - len(resident.pages))
            if available < 0:
                return fitting
        return len(wanted)

    def close(self, resident: ResidentSequence) -> None:
        """Take a sequence out; what it computed stays as a cached prefix if its request allows."""
        del self._residents[resident.sequence]
        self._free_rows.append(resident.row)
        if resident.request.allow_prefix_reuse and resident.frontier:
            self._room.keep(_computed_prefix(resident))
        else:
            self._room.give_back(resident.pages)

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
            self._pool.save(self._slots(resident)) if route is ResumeRoute.SNAPSHOT else None,
        )
        self.close(resident)
        return paused

    def snapshot_bytes(self, resident: ResidentSequence) -> int:
        """Return the host bytes of a SNAPSHOT taken now."""
        return resident.frontier * self._pool.token_bytes

    def resume(self, paused: PausedSequence) -> ResidentSequence:
        """Take a row and pages for a paused sequence.

        Effects: a SNAPSHOT is written back; a REPLAY starts after the longest cached prefix.
        Raises:  IntegrityError — there is no room.
        """
        self._require_row()
        ledger, goal = list(paused.ledger), paused.goal_tokens
        match = None if paused.saved else self._find_prefix(paused.request, ledger[:goal])
        if match is not None:
            frontier = match.shared_tokens
            pages = self._room.take_with_prefix(goal, match.prefix, frontier)
        else:
            frontier = 0 if paused.saved is None else paused.frontier
            pages = self._room.take(max(goal, 1))
        resident = self._admit(
            paused.request,
            ledger,
            pages,
            frontier=frontier,
            replay_end=goal,
            final_hidden=paused.final_hidden,
        )
        if paused.saved is not None:
            self._pool.restore(self._slots(resident), paused.saved)
        return resident

    def _require_row(self) -> None:
        if not self._free_rows:
            raise IntegrityError("rows: every one is taken")

    def _find_prefix(self, request: SequenceRequest, tokens: Sequence[int]) -> PrefixMatch | None:
        """Return the longest computed beginning of a text, cached or of a live sequence."""
        if not request.allow_prefix_reuse:
            return None
        live = [
            _computed_prefix(resident)
            for resident in self._residents.values()
            if resident.request.allow_prefix_reuse
        ]
        return self._room.prefixes.find(tokens, live)

    def _slots(self, resident: ResidentSequence) -> Tensor:
        return resident.slots.slots(0, resident.frontier)

    def _admit(
        self,
        request: SequenceRequest,
        ledger: list[int],
        pages: list[int],
        *,
        frontier: int = 0,
        replay_end: int = 0,
        final_hidden: Tensor | None = None,
    ) -> ResidentSequence:
        resident = ResidentSequence(
            SequenceId(next(self._ids)),
            self._free_rows.pop(),
            request,
            ledger,
            frontier,
            pages,
            final_hidden,
            replay_end,
        )
        self._residents[resident.sequence] = resident
        return resident


def _computed_prefix(resident: ResidentSequence) -> CachedPrefix:
    tokens = np.asarray(resident.ledger[: resident.frontier], dtype=np.int64)
    hidden = resident.final_hidden
    known = {} if hidden is None else {resident.prompt_tokens: hidden}
    return CachedPrefix(tokens, resident.pages, known)
