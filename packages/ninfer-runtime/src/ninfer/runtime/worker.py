"""The one thread that changes requests, residency and program state.

A cycle: take arrivals, sweep the unwanted, restore or admit, relieve pressure, then run one
control unit per row that needs it, one decode round, and one prefill or replay chunk.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from ninfer.contract import (
    EngineOptions,
    EngineUnavailable,
    FinishReason,
    Program,
    QueueTimeout,
)
from ninfer.runtime.counters import Counters
from ninfer.runtime.inbox import EngineState, Inbox
from ninfer.runtime.masks import LookaheadBatch
from ninfer.runtime.pulse import Pulse
from ninfer.runtime.queue import BYPASS_LIMIT, WaitingQueue
from ninfer.runtime.request import EngineRequest, Phase
from ninfer.runtime.residency import Residency
from ninfer.runtime.settlement import Settlement
from ninfer.runtime.units import UnitRunner


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
        self._now = now
        self._waiting = WaitingQueue()
        lanes = min(options.max_concurrency, program.shape.rows)
        self._residency = Residency(
            program, lanes, options.host_snapshot_bytes, now, settlement.transition
        )
        self._units = UnitRunner(
            program,
            self._residency,
            settlement,
            counters,
            pulse,
            lookahead,
            options.mask_threads,
            now,
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
        was_idle = not self._settlement.live
        for request in self._arrivals(self._patience() if block else 0.0):
            self._waiting.append(request)
        if was_idle:
            self._pulse.wake(self._now())
        if self._inbox.state is EngineState.STOPPING:
            return self._stop()
        self._sweep()
        self._place()
        self._residency.relieve_pressure()
        self._units.run_controls()
        self._units.run_decode()
        self._units.run_chunk()
        self._observe()
        if self._inbox.state is EngineState.DRAINING and self.is_idle:
            self._inbox.move_to(EngineState.CLOSED)
            return False
        return True

    def abandon(self) -> None:
        """Fail every request from another thread, while the worker is stuck inside a unit."""
        self._arrivals()
        for request in list(self._settlement.live.values()):
            self._settlement.fail(
                request, EngineUnavailable("the engine was closed while its device did not answer")
            )

    @property
    def is_idle(self) -> bool:
        """Return whether no request is arriving, waiting, resident or paused."""
        return self._inbox.is_empty and not self._settlement.live

    def _patience(self) -> float | None:
        if self._residency.residents or self._residency.paused:
            return 0.0
        head = next(iter(self._waiting), None)
        # The lanes may have become free after this cycle had placed who waits.
        if head is not None and self._residency.can_admit(head):
            return 0.0
        deadline = self._waiting.next_deadline()
        if deadline is not None:
            return max(deadline - self._now(), 0.001)
        is_draining = self._inbox.state is EngineState.DRAINING
        return 0.0 if is_draining else self._pulse.rest(self._now())

    def _arrivals(self, timeout: float | None = 0.0) -> list[EngineRequest]:
        requests = self._inbox.collect(timeout)
        self._settlement.arrived(requests)
        return requests

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
            self._units.members = (request,)
            request.clock.admit(self._now())
            self._residency.admit(request)
            for paused in self._residency.paused[:1]:
                paused.bypasses += 1
            self._settlement.started(request)
            self._units.members = ()

    def _may_admit(self) -> bool:
        # Fresh requests may pass a paused one that does not fit, but not for ever.
        paused = self._residency.paused
        return not paused or paused[0].bypasses < BYPASS_LIMIT

    def _observe(self) -> None:
        self._observe_requests()
        self._observe_memory()
        self._pulse.beat(self._now(), self._counters.live)

    def _observe_requests(self) -> None:
        live, residency = self._counters.live, self._residency
        phases = [request.phase for request in residency.residents]
        live.requests_running = len(phases)
        live.requests_waiting = len(self._waiting)
        live.requests_paused = len(residency.paused)
        live.requests_prefilling = phases.count(Phase.PREFILL)
        live.requests_replaying = phases.count(Phase.REPLAY)
        live.requests_decode_ready = len(phases) - live.requests_prefilling
        live.requests_decode_ready -= live.requests_replaying

    def _observe_memory(self) -> None:
        self._counters.live.host_context_bytes = self._residency.snapshot_bytes
        self._counters.live.usage = self._program.usage

    def _stop(self) -> bool:
        for request in list(self._residency.residents):
            self._residency.release(request)
            self._settlement.stopped(request)
        for request in list(self._residency.paused):
            self._residency.drop(request)
            self._settlement.stopped(request)
        # What arrived since the cycle began; nothing arrives any more.
        for request in (*self._waiting.drain(), *self._arrivals()):
            self._settlement.stopped(request)
        self._counters.nobody_left()
        self._observe_memory()
        self._inbox.move_to(EngineState.CLOSED)
        return False

    def _poison(self, error: BaseException) -> None:
        self._inbox.move_to(EngineState.POISONED, str(error) or type(error).__name__)
        guilty = {id(request) for request in self._units.members}
        with suppress(Exception):
            self._arrivals()
        for request in list(self._settlement.live.values()):
            # Nobody may wait for ever, even where what failed is the log.
            with suppress(Exception):
                self._settlement.poisoned(request, error, is_member=id(request) in guilty)
        self._counters.nobody_left()
