"""Who holds a row, who is set aside, and how they come back.

Source: reference contract section 1, pause and resume.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence

from ninfer.contract import (
    IntegrityError,
    Program,
    ResumeRoute,
    SchedulingEvent,
    SchedulingTransition,
    SequenceRequest,
)
from ninfer.runtime.request import EngineRequest, Phase

Report = Callable[[EngineRequest, SchedulingEvent], None]


class Residency:
    """Residents and paused requests in submit order, with the host budget for snapshots.

    The program owns the bytes; this decides the routes. A restored request is protected until its
    first new unit, and at most one is.
    """

    def __init__(
        self,
        program: Program,
        lanes: int,
        snapshot_bytes: int,
        now: Callable[[], float],
        report: Report,
    ) -> None:
        self._program = program
        self._lanes = lanes
        self._snapshot_budget = snapshot_bytes
        self._now = now
        self._report = report
        self._has_news = False
        self.residents: list[EngineRequest] = []
        self.paused: list[EngineRequest] = []

    @property
    def snapshot_bytes(self) -> int:
        """Return the host bytes held by snapshots."""
        return sum(r.resume.host_bytes for r in self.paused if r.resume is not None)

    def has_lane(self) -> bool:
        """Return whether one more request could be resident."""
        return len(self.residents) < self._lanes

    def can_admit(self, request: EngineRequest) -> bool:
        """Return whether a fresh request finds a lane, a row and room."""
        tokens = request.prepared.prompt_tokens
        return self.has_lane() and self._program.can_open(tokens, request.output_limit)

    def admit(self, request: EngineRequest) -> None:
        """Open a request's sequence from its prompt."""
        opened = self._program.open(
            SequenceRequest(
                tuple(request.prepared.prompt.token_ids),
                request.sampling,
                request.options.execution.allow_prefix_reuse,
            )
        )
        request.sequence = opened.sequence
        if not request.has_started:
            request.reused_tokens = opened.reused_tokens
            request.prefix_path = opened.prefix_path
        else:
            request.prompt_starts_again(opened.reused_tokens)
        request.phase = Phase.PREFILL
        self._enter(request)

    def release(self, request: EngineRequest) -> None:
        """Free the row of a resident that is not in a pending batch."""
        self._program.release(request.resident)
        self.forget(request)

    def forget(self, request: EngineRequest) -> None:
        """Take a resident off the list whose row the program already released."""
        self.residents.remove(request)
        request.sequence = None
        request.is_restoring = False
        self._has_news = True

    def drop(self, request: EngineRequest) -> None:
        """Give up a paused request."""
        if request.resume is not None:
            self._program.drop(request.resume)
            request.resume = None
        self.paused.remove(request)

    def relieve_pressure(self) -> None:
        """Pause the youngest residents until every other one has room for its next unit."""
        while self.residents:
            order = sorted(self.residents, key=lambda r: (not r.is_restoring, r.request_id))
            if self._fitting(order) >= len(order):
                return
            if len(order) == 1:
                raise IntegrityError("the program has no room for a single sequence")
            self._pause(order[-1])

    def _fitting(self, order: Sequence[EngineRequest]) -> int:
        sequences = [r.resident for r in order]
        if all(r.phase is not Phase.CONTROL for r in order):
            return self._program.can_advance(sequences)
        control = [len(r.session.control_tokens) if r.phase is Phase.CONTROL else 0 for r in order]
        return self._program.can_advance(sequences, control)

    def restore_oldest(self) -> None:
        """Bring back the oldest paused request when something became free since the last try."""
        if not self.paused or not self.has_lane() or any(r.is_restoring for r in self.residents):
            return
        if not self._has_news and self.residents:
            return
        request = self.paused[0]
        if not self._fits_back(request):
            if not self.residents:
                raise IntegrityError("the program has no room for a single paused sequence")
            self._has_news = False
            return
        self._restore(request)

    def recovered(self, request: EngineRequest) -> None:
        """End the protection of a restored request after its first new unit."""
        if request.is_restoring:
            request.is_restoring = False
            self._tell(request, SchedulingTransition.RECOVERY_COMPLETE, ResumeRoute.NONE)

    def replay_completed(self, request: EngineRequest) -> None:
        """Let a replayed request go on where it was paused."""
        request.phase = _frontier_phase(request)
        self._tell(request, SchedulingTransition.REPLAY_COMPLETE, ResumeRoute.REPLAY)

    def _enter(self, request: EngineRequest) -> None:
        insort(self.residents, request, key=lambda r: r.request_id)

    def _pause(self, request: EngineRequest) -> None:
        route = self._choose_route(request)
        self._tell(request, SchedulingTransition.PAUSE_STARTED, route)
        if request.phase is Phase.PREFILL:
            self._program.release(request.resident)
        else:
            request.resume = self._program.pause(request.resident, route)
            request.scheduling.device_to_host_bytes += request.resume.host_bytes
        self.residents.remove(request)
        insort(self.paused, request, key=lambda r: r.request_id)
        request.sequence = None
        request.is_restoring = False
        request.phase = Phase.PAUSED
        request.bypasses = 0
        request.scheduling.preemptions += 1
        request.clock.paused_at = self._now()
        self._tell(request, SchedulingTransition.PAUSED, route)

    def _choose_route(self, request: EngineRequest) -> ResumeRoute:
        if request.phase in (Phase.PREFILL, Phase.REPLAY):
            return ResumeRoute.REPLAY
        needed = self._program.snapshot_bytes(request.resident)
        if needed > self._snapshot_budget:
            return ResumeRoute.REPLAY
        while self.snapshot_bytes + needed > self._snapshot_budget:
            if not self._revoke_youngest_after(request):
                return ResumeRoute.REPLAY
        return ResumeRoute.SNAPSHOT

    def _revoke_youngest_after(self, request: EngineRequest) -> bool:
        for other in reversed(self.paused):
            if other.request_id < request.request_id:
                return False
            if other.resume is not None and other.resume.route is ResumeRoute.SNAPSHOT:
                other.resume = self._program.revoke(other.resume)
                self._tell(other, SchedulingTransition.SNAPSHOT_REVOKED, ResumeRoute.REPLAY)
                return True
        return False

    def _fits_back(self, request: EngineRequest) -> bool:
        if request.resume is not None:
            return self._program.can_resume(request.resume)
        return self._program.can_open(request.prepared.prompt_tokens, request.output_limit)

    def _restore(self, request: EngineRequest) -> None:
        state = request.resume
        route = ResumeRoute.REPLAY if state is None else state.route
        started = self._now()
        self._tell(request, SchedulingTransition.RESTORE_STARTED, route)
        if state is None:
            self.admit(request)
        else:
            host_bytes = state.host_bytes
            request.resume = None
            request.sequence = self._program.resume(state)
            request.phase = Phase.REPLAY
            if route is ResumeRoute.SNAPSHOT:
                request.phase = _frontier_phase(request)
                request.scheduling.host_to_device_bytes += host_bytes
            self._enter(request)
        self.paused.remove(request)
        request.is_restoring = True
        self._count_restore(request, route)
        request.clock.maintain(started, self._now())
        self._tell(request, SchedulingTransition.RESTORED, route)

    def _count_restore(self, request: EngineRequest, route: ResumeRoute) -> None:
        if route is ResumeRoute.SNAPSHOT:
            request.scheduling.snapshot_restores += 1
        else:
            request.scheduling.replay_restores += 1
        if request.clock.paused_at is not None:
            request.clock.paused_seconds += self._now() - request.clock.paused_at
            request.clock.paused_at = None

    def _tell(
        self, request: EngineRequest, transition: SchedulingTransition, route: ResumeRoute
    ) -> None:
        self._report(request, SchedulingEvent(transition, route))


def _frontier_phase(request: EngineRequest) -> Phase:
    return Phase.CONTROL if request.needs_control else Phase.DECODE
