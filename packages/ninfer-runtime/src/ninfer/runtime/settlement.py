"""What a round or an end means for one request: state, events, counters, log.

Runs on the worker. Nothing here touches program memory except through the residency.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ninfer.contract import (
    ConstraintDeadEnd,
    EngineUnavailable,
    FinishReason,
    IntegrityError,
    NextAction,
    NInferError,
    OutputDelta,
    ResumeRoute,
    RowDisposition,
    SchedulingEvent,
    SchedulingTransition,
    SpeculativeBackend,
)
from ninfer.runtime.counters import Counters
from ninfer.runtime.events import GenerationStart, PromptProgress
from ninfer.runtime.request import EngineRequest, Phase
from ninfer.runtime.request_log import RequestLog
from ninfer.runtime.residency import Residency
from ninfer.runtime.result import build_result, timing_snapshot
from ninfer.runtime.round import RowOutcome


class Settlement:
    """Applies outcomes to requests and tells consumers, counters and the log."""

    def __init__(
        self,
        counters: Counters,
        log: RequestLog,
        now: Callable[[], float],
        backend: SpeculativeBackend,
        draft_limit: int,
    ) -> None:
        self._counters = counters
        self._log = log
        self._now = now
        self._backend = backend
        self._draft_limit = draft_limit
        self.live: dict[int, EngineRequest] = {}

    def arrived(self, requests: Sequence[EngineRequest]) -> None:
        """Take requests on; each stays in ``live`` until it has its terminal event."""
        self.live.update((request.request_id, request) for request in requests)
        for request in requests:
            self._log.start(request)

    def started(self, request: EngineRequest) -> None:
        """Publish the start, once."""
        if request.has_started:
            return
        request.has_started = True
        request.outlet.publish(
            GenerationStart(
                request.request_id, request.prepared.prompt.report, request.reused_tokens
            )
        )

    def progressed(self, request: EngineRequest) -> None:
        """Publish how much of the prompt is computed."""
        computed = min(
            request.reused_tokens + request.computed_tokens, request.prepared.prompt_tokens
        )
        request.outlet.publish(PromptProgress(computed, request.prepared.prompt_tokens))

    def transition(self, request: EngineRequest, event: SchedulingEvent) -> None:
        """Publish and log a step of pause and resume."""
        request.outlet.publish(event)
        self._log.scheduling(request, event)

    def apply(self, outcome: RowOutcome, residency: Residency) -> None:
        """Publish what a row confirmed and move its request on."""
        request, preview = outcome.request, outcome.preview
        if preview is None:
            residency.forget(request)
            if outcome.disposition is RowDisposition.FAILED_RELEASED:
                place = f"after {len(request.tokens)} generated tokens"
                self.fail(request, ConstraintDeadEnd(f"no token may follow {place}"))
            else:
                self.finish(request, FinishReason.CANCELLED)
            return
        request.clock.produced(self._now())
        request.initial_mask = None
        residency.recovered(request)
        self._publish(request, outcome.deltas)
        if preview.finish is not None:
            residency.release(request)
            self.finish(request, preview.finish)
            return
        request.needs_control = preview.action is NextAction.APPLY_CONTROL
        request.phase = Phase.CONTROL if request.needs_control else Phase.DECODE

    def finish(self, request: EngineRequest, reason: FinishReason) -> None:
        """End a request with a result."""
        deltas, output = request.session.finish(reason)
        self._publish(request, deltas)
        result = build_result(
            request, output, reason, self._now(), self._backend, self._draft_limit
        )
        if not self._end(request):
            return
        try:
            self._counters.ended(result, cancelled=reason is FinishReason.CANCELLED)
            self._log.done(request, result)
        finally:
            request.outlet.finish(result)

    def fail(self, request: EngineRequest, error: NInferError) -> None:
        """End a request with an error; what was published stays published."""
        if not self._end(request):
            return
        try:
            self._counters.failed(dead_end=isinstance(error, ConstraintDeadEnd))
            self._log.error(request, error)
        finally:
            request.outlet.fail(error)

    def stopped(self, request: EngineRequest) -> None:
        """End a request because the engine closes."""
        self.fail(request, EngineUnavailable("the engine was closed before the request ended"))

    def poisoned(self, request: EngineRequest, error: BaseException, *, is_member: bool) -> None:
        """End a request because the engine broke; members of the broken unit see why."""
        if is_member and isinstance(error, IntegrityError):
            seen: NInferError = type(error)(str(error))
        else:
            kind = type(error).__name__
            seen = EngineUnavailable(
                f"the engine stopped after an internal error ({kind}): {error}"
            )
        seen.__cause__ = error
        self.fail(request, seen)

    def _publish(self, request: EngineRequest, deltas: Sequence[OutputDelta]) -> None:
        if deltas:
            request.clock.published(self._now())
            if request.options.live_timings:
                request.outlet.publish(timing_snapshot(request, self._now()))
        for delta in deltas:
            request.outlet.publish(delta)

    def _end(self, request: EngineRequest) -> bool:
        """Return whether this is the request's end; who gave up a stuck worker was there first."""
        if self.live.pop(request.request_id, None) is None:
            return False
        request.phase = Phase.ENDED
        if request.scheduling.preemptions:
            self.transition(
                request, SchedulingEvent(SchedulingTransition.TERMINAL, ResumeRoute.NONE)
            )
        return True
