"""What sequences leave behind for others, and where others start from it.

Source: reference contract, section 1; specification 7.5 and 13.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ninfer.contract import SequenceRequest
from ninfer.runtime.program.checkpoint_places import checkpoint_places
from ninfer.runtime.program.kv_room import KvRoom
from ninfer.runtime.program.prefix_cache import CachedPrefix
from ninfer.runtime.program.prefix_start import (
    AnyToken,
    AtCheckpoint,
    PrefixStart,
    StartRule,
    latest_start,
)
from ninfer.runtime.program.recurrent_checkpoints import Checkpoint, RecurrentCheckpoints
from ninfer.runtime.program.sequence import ResidentSequence


class PrefixReuse:
    """Prefixes of cached and live sequences.

    ``checkpoints`` are a hybrid model's. ``lookahead`` is how many tokens after a column a
    drafter's entry depends on, None without one.
    """

    def __init__(
        self,
        room: KvRoom,
        checkpoints: RecurrentCheckpoints | None,
        lookahead: int | None,
        chunk_tokens: int,
    ) -> None:
        self._room = room
        self._checkpoints = checkpoints
        self._lookahead = lookahead
        self._chunk_tokens = chunk_tokens
        self._rule: StartRule = AtCheckpoint()
        if checkpoints is None:
            self._rule = AnyToken(lookahead or 0)

    def find(
        self,
        request: SequenceRequest,
        wanted: Sequence[int],
        residents: Iterable[ResidentSequence],
        *,
        samples: bool,
    ) -> tuple[PrefixStart, tuple[int, ...]]:
        """Return where a text starts, and where it should leave checkpoints.

        ``samples`` says that its last token must be computed or known with its hidden state.
        """
        if not self._is_reusable(request):
            return PrefixStart.nowhere(), ()
        live = [self._prefix_of(r) for r in residents if self._is_reusable(r.request)]
        matches = self._room.prefixes.matches(wanted, live)
        start = latest_start(self._rule, matches, len(wanted), samples=samples)
        if start.prefix is not None:
            self._room.prefixes.touch(start.prefix)
        if self._checkpoints is None:
            return start, ()
        shared = max((match.shared_tokens for match in matches), default=0)
        end = len(request.token_ids)
        return start, checkpoint_places(start.tokens, shared, end, self._chunk_tokens)

    def take(self, start: PrefixStart, tokens: int) -> tuple[list[int], dict[int, Checkpoint]]:
        """Return pages for so many tokens, the start's among them, and its checkpoints.

        Raises: IntegrityError — there is no room.
        """
        if start.prefix is None:
            return self._room.take(tokens), {}
        found = start.prefix.kept_checkpoints
        shared = {c.tokens: c for c in found if c.tokens <= start.tokens}
        if self._checkpoints is not None:
            # Before room is made, which may cost the prefix.
            self._checkpoints.hold(shared.values())
        return self._room.take_with_prefix(tokens, start.prefix, start.tokens), shared

    def enter(self, start: PrefixStart, row: int) -> None:
        """Write the recurrent states of a start to a row."""
        if self._checkpoints is not None and start.checkpoint is not None:
            self._checkpoints.restore(start.checkpoint, row)

    def mark(self, resident: ResidentSequence) -> None:
        """Take a checkpoint at a sequence's frontier, if there is none yet and its drafter can."""
        draft, tokens = resident.draft, resident.frontier
        known = resident.checkpoints.get(tokens)
        if self._checkpoints is None or (known is not None and known.is_kept):
            return
        if self._lookahead is None:
            kept = PrefixStart.nowhere(tokens).draft
        elif draft.absorbed + self._lookahead <= tokens:
            kept = draft.without_drafts()
        else:
            # The drafter has read the token after these, which another text may not have.
            return
        hidden = resident.final_hidden if tokens == resident.prompt_tokens else None
        resident.checkpoints[tokens] = self._checkpoints.take(resident.row, tokens, kept, hidden)

    def leave(self, resident: ResidentSequence, *, marks: bool) -> None:
        """Keep what a sequence computed, if its request allows, else give its memory back.

        A hybrid's ends with a checkpoint if it ``marks`` its frontier.
        """
        if marks and self._is_reusable(resident.request) and resident.frontier:
            self.mark(resident)
        prefix = self._prefix_of(resident)
        is_startable = self._checkpoints is None or bool(prefix.kept_checkpoints)
        if self._is_reusable(resident.request) and resident.frontier and is_startable:
            self._room.keep(prefix)
        else:
            self._room.drop(prefix)

    def _is_reusable(self, request: SequenceRequest) -> bool:
        """Return whether others may start from what a request computes."""
        can_start = self._checkpoints is None or self._checkpoints.capacity > 0
        return request.allow_prefix_reuse and can_start

    def _prefix_of(self, resident: ResidentSequence) -> CachedPrefix:
        """Return what another sequence could start from.

        Without checkpoints these are columns that a drafter has read too.
        """
        end = entries = resident.frontier
        if self._lookahead is not None:
            entries = min(end, resident.draft.absorbed)
        known = {}
        if self._checkpoints is None:
            end = min(end, entries + (self._lookahead or 0))
            if resident.final_hidden is not None:
                known = {resident.prompt_tokens: resident.final_hidden}
        tokens = np.asarray(resident.ledger[:end], dtype=np.int64)
        return CachedPrefix(tokens, resident.pages, known, entries, resident.checkpoints)
