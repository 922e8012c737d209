"""The executor on torch: prefill, rounds, commits, pauses.

Implements: ninfer.contract.Program. Assumes: one thread calls it, and a PendingBatch is consumed
before the next round. Everything that a round writes before its commit lies beyond a frontier,
so that dropping the round is doing nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from ninfer.contract import (
    CommitDecision,
    EngineOptions,
    IntegrityError,
    MaskProvider,
    MemoryReport,
    OpenedSequence,
    PendingBatch,
    PendingRow,
    PrefillStep,
    PrefixPath,
    ProgramShape,
    ProgramUsage,
    ReplayStep,
    ResumeRoute,
    ResumeState,
    RngPurpose,
    RoundKind,
    RowDisposition,
    RowMismatch,
    SequenceId,
    SequenceRequest,
)
from ninfer.runtime.loading import LoadedModel
from ninfer.runtime.models.drafters import Drafter
from ninfer.runtime.program.assembly import RoundForm, assemble
from ninfer.runtime.program.decisions import check_decisions, disposition_of
from ninfer.runtime.program.resume import PausedSequence
from ninfer.runtime.program.sequence import ResidentSequence


class TorchProgram:
    """One model, its KV pool, and the sequences in it; a drafter if the options ask for one.

    ``form`` says how rounds run; None takes what is fastest on the model's device.
    Raises: UnsupportedOption — the options ask for a drafter that is not the given one; ValueError
            — the key-value memory holds no whole context, or is more than the device has;
            DeviceFailure — a round cannot be captured.
    """

    def __init__(
        self,
        model: LoadedModel,
        options: EngineOptions | None = None,
        drafter: Drafter | None = None,
        form: RoundForm | None = None,
    ) -> None:
        parts = assemble(model, EngineOptions() if options is None else options, drafter, form)
        self._decoder = model.decoder
        self._shape = parts.shape
        self._pool = parts.pool
        self._residents = parts.residents
        self._sampler = parts.sampler
        self._ledger = parts.ledger
        self._ordinary = parts.ordinary
        self._round = parts.round
        self._drafting = parts.drafting
        self._memory = parts.memory
        self._pending: PendingBatch | None = None

    @property
    def shape(self) -> ProgramShape:
        """Return the fixed capacities."""
        return self._shape

    @property
    def usage(self) -> ProgramUsage:
        """Return what is allocated now."""
        return self._residents.usage

    @property
    def memory(self) -> MemoryReport:
        """Implements: Program.memory."""
        return self._memory

    def can_open(self, prompt_tokens: int, output_tokens: int) -> bool:
        """Implements: Program.can_open; the whole prompt and one round of output must fit."""
        first_output = min(output_tokens, self._round.columns)
        wanted = min(prompt_tokens + first_output, self._shape.context_tokens)
        return self._residents.has_room(wanted)

    def can_advance(
        self, sequences: Sequence[SequenceId], control_tokens: Sequence[int] = ()
    ) -> int:
        """Implements: Program.can_advance."""
        residents = [self._residents.get(sequence) for sequence in sequences]
        forced = control_tokens or [0] * len(residents)
        extents = map(self._next_extent, residents, forced)
        return self._residents.count_reservable(list(zip(residents, extents, strict=True)))

    def open(self, request: SequenceRequest) -> OpenedSequence:
        """Implements: Program.open.

        Raises: IntegrityError — the prompt is empty or too long, or there is no room.
        """
        if not 0 < len(request.token_ids) <= self._shape.context_tokens:
            raise IntegrityError(
                f"prompt: {len(request.token_ids)} tokens, context of {self._shape.context_tokens}"
            )
        resident = self._residents.open(request)
        self._sampler.reset(resident)
        path = PrefixPath.CHECKPOINT if resident.frontier else PrefixPath.ROOT
        return OpenedSequence(resident.sequence, resident.frontier, path)

    def prefill(self, sequence: SequenceId, masks: MaskProvider | None) -> PrefillStep:
        """Implements: Program.prefill."""
        self._require_settled()
        resident = self._residents.get(sequence)
        if resident.has_anchor or not resident.is_replayed:
            raise RowMismatch(f"sequence {sequence}: is not in prefill")
        started = time.perf_counter()
        computed = self._ledger.prefill(resident)
        if resident.final_hidden is None:
            return PrefillStep(computed)
        logits = self._decoder.logits(resident.final_hidden.unsqueeze(0))
        waited = time.perf_counter() - started
        rows = self._ordinary.choose([resident], logits, masks, RngPurpose.PREFILL)
        return PrefillStep(computed, self._provide(RoundKind.PREFILL, rows, waited))

    def decode(
        self,
        sequences: Sequence[SequenceId],
        remaining_tokens: Sequence[int],
        masks: MaskProvider | None,
    ) -> PendingBatch:
        """Implements: Program.decode."""
        self._require_settled()
        residents = self._decodable(sequences)
        if len(remaining_tokens) != len(residents) or min(remaining_tokens, default=0) < 1:
            raise RowMismatch("decode: every row needs at least one remaining token")
        rows, device_seconds, draft_seconds = self._round.run(residents, remaining_tokens, masks)
        return self._provide(RoundKind.DECODE, rows, device_seconds, draft_seconds)

    def append_control(self, sequence: SequenceId, tokens: Sequence[int]) -> PendingBatch:
        """Implements: Program.append_control.

        Raises: RowMismatch — there are no tokens, or nothing was decoded yet.
        """
        self._require_settled()
        (resident,) = self._decodable([sequence])
        if not tokens:
            raise RowMismatch(f"sequence {sequence}: no control tokens")
        started = time.perf_counter()
        states = self._ledger.columns(resident, [resident.anchor, *tokens[:-1]])
        if self._drafting is not None:
            self._drafting.hold(resident, states.features)
        row = PendingRow(sequence, tuple(tokens))
        return self._provide(RoundKind.CONTROL, [row], time.perf_counter() - started)

    def commit(
        self, batch: PendingBatch, decisions: Sequence[CommitDecision]
    ) -> Sequence[RowDisposition]:
        """Implements: Program.commit; every decision is checked before the first one acts.

        A split of prefix execution needs no work here: any prefix of keys and values is reusable,
        and recurrent states leave their checkpoints in prompts and where a sequence is closed.
        """
        self._require_pending(batch)
        check_decisions(batch, decisions)
        self._pending = None
        accepted = [
            list(row.tokens[: decision.accepted_tokens])
            for row, decision in zip(batch.rows, decisions, strict=True)
        ]
        residents = [self._residents.get(row.sequence) for row in batch.rows]
        self._sampler.count(residents, accepted)
        if batch.kind is not RoundKind.PREFILL:
            self._pool.commit([len(tokens) for tokens in accepted])
        dispositions = []
        for resident, tokens, decision in zip(residents, accepted, decisions, strict=True):
            if batch.kind is not RoundKind.PREFILL:
                resident.frontier += len(tokens)
            resident.ledger += tokens
            if self._drafting is not None:
                self._drafting.settle(resident, len(tokens))
            disposition = disposition_of(decision)
            if not tokens:
                self._residents.close(resident)
            dispositions.append(disposition)
        if self._drafting is not None:
            self._drafting.close_round()
        return dispositions

    def abort(self, batch: PendingBatch) -> None:
        """Implements: Program.abort; what the round wrote lies beyond every frontier."""
        self._require_pending(batch)
        self._pending = None
        self._pool.drop()
        if self._drafting is not None:
            self._drafting.close_round()

    def release(self, sequence: SequenceId) -> None:
        """Implements: Program.release."""
        self._residents.close(self._outside_round(sequence))

    def snapshot_bytes(self, sequence: SequenceId) -> int:
        """Implements: Program.snapshot_bytes."""
        return self._residents.snapshot_bytes(self._residents.get(sequence))

    def pause(self, sequence: SequenceId, route: ResumeRoute) -> PausedSequence:
        """Implements: Program.pause."""
        return self._residents.pause(self._outside_round(sequence), route)

    def revoke(self, state: ResumeState) -> PausedSequence:
        """Implements: Program.revoke."""
        paused = _own(state)
        paused.forget_state()
        return paused

    def drop(self, state: ResumeState) -> None:
        """Implements: Program.drop."""
        _own(state).forget_state()

    def can_resume(self, state: ResumeState) -> bool:
        """Implements: Program.can_resume; the old frontier and the next round must fit."""
        wanted = _own(state).goal_tokens + self._round.columns
        return self._residents.has_room(min(wanted, self._shape.context_tokens))

    def resume(self, state: ResumeState) -> SequenceId:
        """Implements: Program.resume."""
        resident = self._residents.resume(_own(state))
        self._sampler.reset(resident)
        return resident.sequence

    def replay(self, sequence: SequenceId) -> ReplayStep:
        """Implements: Program.replay."""
        self._require_settled()
        resident = self._residents.get(sequence)
        computed = self._ledger.replay(resident)
        return ReplayStep(computed, resident.is_replayed)

    def _provide(
        self,
        kind: RoundKind,
        rows: Sequence[PendingRow],
        device_seconds: float,
        draft_seconds: float = 0.0,
    ) -> PendingBatch:
        self._pending = PendingBatch(kind, tuple(rows), device_seconds, draft_seconds)
        return self._pending

    def _decodable(self, sequences: Sequence[SequenceId]) -> list[ResidentSequence]:
        residents = [self._residents.get(sequence) for sequence in sequences]
        if not residents or len(set(sequences)) != len(residents):
            raise RowMismatch("round: no rows, or a row twice")
        for resident in residents:
            if not resident.is_decodable:
                raise RowMismatch(f"sequence {resident.sequence}: is not ready to decode")
            if len(resident.ledger) >= self._shape.context_tokens:
                raise RowMismatch(f"sequence {resident.sequence}: the context is full")
        return residents

    def _next_extent(self, resident: ResidentSequence, control_tokens: int) -> int:
        """Return the tokens whose keys and values a sequence holds after its next unit."""
        if not resident.is_decodable:
            return max(resident.prompt_tokens, resident.replay_end)
        columns = control_tokens or self._round.columns
        return min(resident.frontier + columns, self._shape.context_tokens)

    def _outside_round(self, sequence: SequenceId) -> ResidentSequence:
        pending = () if self._pending is None else self._pending.rows
        if any(row.sequence == sequence for row in pending):
            raise RowMismatch(f"sequence {sequence}: is in a pending batch")
        return self._residents.get(sequence)

    def _require_settled(self) -> None:
        if self._pending is not None:
            raise RowMismatch("round: the last batch is neither committed nor aborted")

    def _require_pending(self, batch: PendingBatch) -> None:
        if batch is not self._pending:
            raise RowMismatch("batch: is not the pending one")


def _own(state: ResumeState) -> PausedSequence:
    if not isinstance(state, PausedSequence):
        raise RowMismatch(f"resume state: {type(state).__name__} is not of this program")
    return state
