"""The one thread that changes requests, residency and program state.

A cycle: take arrivals, sweep the unwanted, restore or admit, relieve pressure, then run one
control unit per row that needs it, one decode round, and one prefill or replay chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ninfer.contract import (
    EngineOptions,
    FinishReason,
    PendingBatch,
    Program,
    QueueTimeout,
)
from ninfer.runtime.clocks import UnitCost, UnitKind
from ninfer.runtime.counters import Counters
from ninfer.runtime.inbox import EngineState, Inbox
from ninfer.runtime.masks import LookaheadBatch, SessionMasks
from ninfer.runtime.pulse import Pulse
from ninfer.runtime.queue import BYPASS_LIMIT, WaitingQueue
from ninfer.runtime.request import EngineRequest, Phase
from ninfer.runtime.residency import Residency
from ninfer.runtime.round import settle_round
from ninfer.runtime.settlement import Settlement


class Worker:
    """Runs requests over a program until it is told to stop; see ``run``."""

    def __init__(
        self,
        program: Program,
        options: EngineOptions,
        inbox: Inbox,
        settlement: Settlement,
        counters: Counters,
        pulse: Pulse,
        lookahead: LookaheadBatch,
        now: Callable[[], float],
    ) -> None:
        self._program = program
        self._inbox = inbox
        self._settlement = settlement
        self._counters = counters
        self._pulse = pulse
        self._lookahead = lookahead
        self._mask_threads = options.mask_threads
        self._now = now
        self._waiting = WaitingQueue()
        self._chunks = 0
        self._in_unit: Sequence[EngineRequest] = ()
        lanes = min(options.max_concurrency, program.shape.rows)
        self._residency = Residency(
            program, lanes, options.host_snapshot_bytes, now, settlement.transition
        )

    def run(self) -> None:
        """Cycle until the inbox says stop; whatever escapes poisons the engine."""
        try:
            while self.cycle():
                pass
        except BaseException as error:
            self._poison(error)

    def cycle(self, *, block: bool = True) -> bool:
        """Run one cycle; return False once the engine is closed.

        With ``block`` an idle worker waits for an arrival, a wake-up or the next deadline.
        """
        for request in self._inbox.collect(self._patience() if block else 0.0):
            self._settlement.arrived(request)
            self._waiting.append(request)
        if self._inbox.state is EngineState.STOPPING:
            return self._stop()
        self._sweep()
        self._place()
        self._residency.relieve_pressure()
        self._run_controls()
        self._run_decode()
        self._run_chunk()
        self._observe()
        if self._inbox.state is EngineState.DRAINING and self.is_idle:
            self._inbox.move_to(EngineState.CLOSED)
            return False
        return True

    @property
    def is_idle(self) -> bool:
        """Return whether no request is arriving, waiting, resident or paused."""
        return self._inbox.is_empty and not self._settlement.live

    def _patience(self) -> float | None:
        if self._residency.residents or self._residency.paused:
            return 0.0
        deadline = self._waiting.next_deadline()
        if deadline is not None:
            return max(deadline - self._now(), 0.001)
        return 0.0 if self._inbox.state is EngineState.DRAINING else None

    def _sweep(self) -> None:
        cancelled, expired = self._waiting.take_unwanted(self._now())
        for request in cancelled:
            self._settlement.finish(request, FinishReason.CANCELLED)
        for request in expired:
            self._settlement.fail(
                request, QueueTimeout("the pending deadline passed before the request was admitted")
            )
        for request in [r for r in self._residency.residents if r.outlet.is_cancelled]:
            self._residency.release(request)
            self._settlement.finish(request, FinishReason.CANCELLED)
        for request in [r for r in self._residency.paused if r.outlet.is_cancelled]:
            self._residency.drop(request)
            self._settlement.finish(request, FinishReason.CANCELLED)

    def _place(self) -> None:
        self._residency.restore_oldest()
        while self._may_admit():
            request = self._waiting.take_fitting(self._residency.can_admit)
            if request is None:
                return
            self._in_unit = (request,)
            request.clock.admit(self._now())
            self._residency.admit(request)
            for paused in self._residency.paused[:1]:
                paused.bypasses += 1
            self._settlement.started(request)

    def _may_admit(self) -> bool:
        # Fresh requests may pass a paused one that does not fit, but not for ever.
        paused = self._residency.paused
        return not paused or paused[0].bypasses < BYPASS_LIMIT

    def _run_controls(self) -> None:
        for request in [r for r in self._residency.residents if r.phase is Phase.CONTROL]:
            started = self._now()
            tokens = tuple(request.session.control_tokens)
            self._in_unit = (request,)
            batch = self._program.append_control(request.resident, tokens)
            self._settle((request,), batch, UnitKind.CONTROL, started)

    def _run_decode(self) -> None:
        rows = [r for r in self._residency.residents if r.phase is Phase.DECODE]
        if not rows:
            return
        started = self._now()
        self._in_unit = rows
        masks = SessionMasks(rows, self._lookahead, self._mask_threads)
        batch = self._program.decode(
            [r.resident for r in rows],
            [r.session.remaining_model_tokens for r in rows],
            masks if masks.has_constraint else None,
        )
        self._settle(rows, batch, UnitKind.DECODE, started)

    def _run_chunk(self) -> None:
        candidates = [
            r for r in self._residency.residents if r.phase in (Phase.PREFILL, Phase.REPLAY)
        ]
        if not candidates:
            return
        request = min(candidates, key=lambda r: (not r.is_restoring, r.last_chunk, r.request_id))
        self._chunks += 1
        request.last_chunk = self._chunks
        self._in_unit = (request,)
        if request.phase is Phase.REPLAY:
            self._replay_chunk(request)
        else:
            self._prefill_chunk(request)

    def _prefill_chunk(self, request: EngineRequest) -> None:
        started = self._now()
        masks = SessionMasks((request,), self._lookahead, self._mask_threads)
        wants_mask = masks.has_constraint and request.output_limit > 0
        step = self._program.prefill(request.resident, masks if wants_mask else None)
        request.computed_tokens += step.computed_tokens
        self._pulse.add(prefilled=step.computed_tokens)
        if step.batch is None:
            cost = _cost(UnitKind.PREFILL, started, self._now())
            request.clock.charge(cost)
            self._counters.unit(cost)
            self._settlement.progressed(request)
            return
        self._settlement.progressed(request)
        if request.output_limit > 0:
            self._settle((request,), step.batch, UnitKind.PREFILL, started)
            return
        self._program.abort(step.batch)
        self._residency.release(request)
        request.clock.charge(_cost(UnitKind.PREFILL, started, self._now()))
        self._settlement.finish(request, FinishReason.NONE)

    def _replay_chunk(self, request: EngineRequest) -> None:
        started = self._now()
        step = self._program.replay(request.resident)
        request.scheduling.replayed_tokens += step.computed_tokens
        cost = _cost(UnitKind.REPLAY, started, self._now())
        request.clock.charge(cost)
        self._counters.unit(cost)
        if step.complete:
            self._residency.replay_completed(request)

    def _settle(
        self, rows: Sequence[EngineRequest], batch: PendingBatch, kind: UnitKind, started: float
    ) -> None:
        produced = self._now()
        settled = settle_round(self._program, rows, batch, self._now)
        waits = batch.device_wait_seconds + batch.draft_wait_seconds
        cost = UnitCost(
            kind,
            started,
            self._now(),
            max(produced - started - waits, 0.0),
            settled.post_seconds,
            settled.output_seconds,
            batch.device_wait_seconds,
            batch.draft_wait_seconds,
        )
        self._counters.unit(cost)
        for outcome in settled.outcomes:
            outcome.request.clock.charge(cost)
            if outcome.preview is not None:
                self._pulse.add(generated=outcome.preview.accepted_tokens)
            self._settlement.apply(outcome, self._residency)
        self._in_unit = ()

    def _observe(self) -> None:
        live, residency = self._counters.live, self._residency
        phases = [request.phase for request in residency.residents]
        live.requests_running = len(phases)
        live.requests_waiting = len(self._waiting)
        live.requests_paused = len(residency.paused)
        live.requests_prefilling = phases.count(Phase.PREFILL)
        live.requests_replaying = phases.count(Phase.REPLAY)
        live.requests_decode_ready = len(phases) - live.requests_prefilling
        live.requests_decode_ready -= live.requests_replaying
        live.host_context_bytes = residency.snapshot_bytes
        live.usage = self._program.usage
        self._pulse.beat(self._now(), live)

    def _stop(self) -> bool:
        for request in list(self._residency.residents):
            self._residency.release(request)
            self._settlement.stopped(request)
        for request in list(self._residency.paused):
            self._residency.drop(request)
            self._settlement.stopped(request)
        for request in self._waiting.drain():
            self._settlement.stopped(request)
        self._inbox.move_to(EngineState.CLOSED)
        return False

    def _poison(self, error: BaseException) -> None:
        self._inbox.move_to(EngineState.POISONED, str(error) or type(error).__name__)
        guilty = {id(request) for request in self._in_unit}
        for request in self._inbox.collect():
            self._settlement.arrived(request)
        for request in list(self._settlement.live.values()):
            self._settlement.poisoned(request, error, is_member=id(request) in guilty)


def _cost(kind: UnitKind, started: float, ended: float) -> UnitCost:
    return UnitCost(kind, started, ended, ended - started, 0.0, 0.0, 0.0, 0.0)
