"""Which sequences are resident, in which row, on which pages.

Owns physical identity: sequence id, row and pages are three different things. Computes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import numpy as np
import torch
from torch import Tensor

from ninfer.contract import (
    IntegrityError,
    ProgramUsage,
    ResumeRoute,
    RowMismatch,
    SequenceId,
    SequenceRequest,
)
from ninfer.runtime.models.forward_batch import RowInput
from ninfer.runtime.models.kv_group import KvGroup
from ninfer.runtime.models.kv_pool import PAGE_TOKENS
from ninfer.runtime.program.draft_context import DraftContext
from ninfer.runtime.program.kv_room import KvRoom, pages_for
from ninfer.runtime.program.prefix_cache import CachedPrefix, PrefixMatch
from ninfer.runtime.program.resume import PausedSequence
from ninfer.runtime.program.sequence import ResidentSequence


class ResidentSet:
    """Rows and pages of the sequences in memory.

    ``lookahead`` is how many tokens after a column a drafter's entry depends on, None without one.
    """

    def __init__(
        self, pool: KvGroup, pages: int, rows: int, device: torch.device, lookahead: int | None
    ) -> None:
        self._pool = pool
        self._device = device
        self._drafts = lookahead is not None
        self._lookahead = lookahead or 0
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
        # Entries that depend on what differs are of no use. Without a final hidden state the last
        # token is computed again, because that is what samples.
        entries = match.shared_tokens - self._lookahead
        reused = len(prompt) if hidden is not None else min(entries, len(prompt) - 1)
        pages = self._room.take_with_prefix(len(prompt), match.prefix, max(reused, 0))
        resident = self._admit(request, prompt, pages, frontier=max(reused, 0), final_hidden=hidden)
        if hidden is not None and self._lookahead:
            resident.draft = DraftContext(entries, hidden.unsqueeze(0))
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

    def close(self, resident: ResidentSequence) -> None:
        """Take a sequence out; what it computed stays as a cached prefix if its request allows."""
        del self._residents[resident.sequence]
        self._free_rows.append(resident.row)
        if self._is_reusable(resident.request) and resident.frontier:
            self._room.keep(self._computed_prefix(resident))
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
            None,
        )
        if route is ResumeRoute.SNAPSHOT:
            paused.saved = self._pool.save(self._slots(resident), resident.row)
            paused.draft = resident.draft.moved_to(torch.device("cpu"))
        self.close(resident)
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
        match = None if paused.saved else self._find_prefix(paused.request, ledger[:goal])
        if match is not None:
            frontier = max(match.shared_tokens - self._lookahead, 0)
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
            self._pool.restore(self._slots(resident), resident.row, paused.saved)
            resident.draft = paused.draft.moved_to(self._device)
        return resident

    def _require_row(self) -> None:
        if not self._free_rows:
            raise IntegrityError("rows: every one is taken")

    def _find_prefix(self, request: SequenceRequest, tokens: Sequence[int]) -> PrefixMatch | None:
        """Return the longest computed beginning of a text, cached or of a live sequence."""
        if not self._is_reusable(request):
            return None
        live = [
            self._computed_prefix(resident)
            for resident in self._residents.values()
            if self._is_reusable(resident.request)
        ]
        return self._room.prefixes.find(tokens, live)

    def _is_reusable(self, request: SequenceRequest) -> bool:
        """Return whether others may start from what a request computes.

        A recurrent state belongs to one prefix, and only the last one is kept.
        """
        return request.allow_prefix_reuse and not self._pool.is_recurrent

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
            DraftContext(frontier),
        )
        self._residents[resident.sequence] = resident
        self._pool.reset(resident.row)
        return resident

    def _computed_prefix(self, resident: ResidentSequence) -> CachedPrefix:
        """Return what another sequence could start from: columns that a drafter has read too."""
        end = resident.frontier
        if self._drafts:
            end = min(end, resident.draft.absorbed + self._lookahead)
        tokens = np.asarray(resident.ledger[:end], dtype=np.int64)
        hidden = resident.final_hidden
        known = {} if hidden is None else {resident.prompt_tokens: hidden}
        return CachedPrefix(tokens, resident.pages, known)
