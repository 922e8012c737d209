"""Computes tokens that are known already: chunks of a prompt or a replay, and forced tokens."""

from __future__ import annotations

from collections.abc import Sequence

from ninfer.runtime.models.decoder import ColumnStates, Decoder
from ninfer.runtime.models.forward_batch import forward_batch
from ninfer.runtime.models.kv_pool import KvPool
from ninfer.runtime.program.drafting import Drafting
from ninfer.runtime.program.resident_set import ResidentSet
from ninfer.runtime.program.sequence import ResidentSequence


class LedgerPass:
    """Forward passes over one sequence, outside of rounds."""

    def __init__(
        self,
        decoder: Decoder,
        pool: KvPool,
        residents: ResidentSet,
        drafting: Drafting | None,
        chunk_tokens: int,
    ) -> None:
        self._decoder = decoder
        self._pool = pool
        self._residents = residents
        self._drafting = drafting
        self._taps = () if drafting is None else drafting.drafter.taps
        self._chunk_tokens = chunk_tokens

    def prefill(self, resident: ResidentSequence) -> int:
        """Compute the next chunk of a prompt and return its tokens.

        Effects: a chunk that reaches a place of a checkpoint is computed in two passes.
        """
        begin = resident.frontier
        end = min(begin + self._chunk_tokens, resident.prompt_tokens)
        for place in resident.places:
            if begin < place < end:
                self._advance(resident, place)
        return self._advance(resident, end) - begin

    def replay(self, resident: ResidentSequence) -> int:
        """Compute the next chunk of a replay, in one pass, and return its tokens."""
        begin = resident.frontier
        end = min(begin + self._chunk_tokens, resident.replay_end)
        return self._advance(resident, end) - begin

    def columns(
        self, resident: ResidentSequence, tokens: Sequence[int], *, is_whole: bool = False
    ) -> ColumnStates:
        """Return the states of new columns after a frontier, provisional until the commit."""
        rows = self._residents.new_columns([resident], [tokens])
        batch = forward_batch(rows, self._pool, is_whole=is_whole)
        return self._decoder.states(batch, self._pool, self._taps)

    def _advance(self, resident: ResidentSequence, end: int) -> int:
        """Compute the ledger up to ``end`` and return the frontier."""
        begin = resident.frontier
        if end <= begin:
            return begin
        states = self.columns(resident, resident.ledger[begin:end], is_whole=True)
        self._pool.commit_all()
        resident.frontier = end
        if begin < resident.prompt_tokens <= end:
            resident.final_hidden = states.hidden[resident.prompt_tokens - 1 - begin].clone()
        if self._drafting is not None:
            self._drafting.observe(resident, states.features)
        if end in resident.places:
            self._residents.mark(resident)
        return end
