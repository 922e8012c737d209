"""Where one request's wall clock went; read once, at its end.

Exposed seconds are the latency this request saw. Rows of one batch see the same seconds, so they
never add up over requests.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from ninfer.contract import EngineTiming, Timings


class UnitKind(Enum):
    """What a unit of work was."""

    PREFILL = "prefill"
    REPLAY = "replay"
    DECODE = "decode"
    CONTROL = "control"


class UnitCost(NamedTuple):
    """Seconds of one unit; ``submit`` leaves out ``device_wait``, which holds ``draft_wait``.

    Source: specification 12.2.
    """

    kind: UnitKind
    started: float
    ended: float
    submit: float
    post: float
    output: float
    device_wait: float
    draft_wait: float


@dataclass(slots=True)
class RequestClock:
    """Marks and sums of one request, on the engine's clock."""

    prepare_started: float
    prepare_seconds: float
    session_seconds: float
    submitted: float
    queued: float
    admitted: float | None = None
    first_token: float | None = None
    first_output: float | None = None
    last_token: float | None = None
    boundary: float = 0.0
    boundary_seconds: float = 0.0
    maintenance_seconds: float = 0.0
    submit_seconds: float = 0.0
    post_seconds: float = 0.0
    output_seconds: float = 0.0
    device_wait_seconds: float = 0.0
    draft_wait_seconds: float = 0.0
    decode_host_seconds: float = 0.0
    decode_device_seconds: float = 0.0
    prefill_seconds: float = 0.0
    prefill_units: int = 0
    decode_rounds: int = 0
    control_units: int = 0
    paused_at: float | None = None
    paused_seconds: float = 0.0

    def admit(self, now: float) -> None:
        """Mark the admission; only the first counts."""
        if self.admitted is None:
            self.admitted = now
        self.boundary = now

    def charge(self, cost: UnitCost) -> None:
        """Add a unit that this request took part in."""
        self.boundary_seconds += max(cost.started - self.boundary, 0.0)
        self.boundary = cost.ended
        self.submit_seconds += cost.submit
        self.post_seconds += cost.post
        self.output_seconds += cost.output
        self.device_wait_seconds += cost.device_wait
        self.draft_wait_seconds += cost.draft_wait
        if cost.kind is UnitKind.DECODE:
            self.decode_rounds += 1
            self.decode_host_seconds += cost.submit + cost.post + cost.output
            self.decode_device_seconds += cost.device_wait
        elif cost.kind is UnitKind.CONTROL:
            self.control_units += 1
        elif cost.kind is UnitKind.PREFILL:
            self.prefill_units += 1
            self.prefill_seconds += cost.ended - cost.started

    def maintain(self, started: float, ended: float) -> None:
        """Add maintenance, such as a restore, that this request waited for."""
        self.maintenance_seconds += ended - started
        self.boundary = ended

    def produced(self, now: float) -> None:
        """Mark committed tokens."""
        if self.first_token is None:
            self.first_token = now
        self.last_token = now

    def published(self, now: float) -> None:
        """Mark published text; only the first counts."""
        if self.first_output is None:
            self.first_output = now

    def timings(self, now: float) -> Timings:
        """Return the wall-clock summary of a request that ends now."""
        first, last, admitted = self.first_token, self.last_token, self.admitted
        return Timings(
            prepare=self.prepare_seconds + self.session_seconds,
            first_token=first - self.submitted if first is not None else 0.0,
            first_output=0.0 if self.first_output is None else self.first_output - self.submitted,
            prefill=self.prefill_seconds,
            decode=0.0 if first is None or last is None else last - first,
            prompt_wall=0.0 if admitted is None else (now if first is None else first) - admitted,
            generation_wall=now - first if first is not None else 0.0,
            total=now - self.prepare_started,
        )

    def engine_timing(self, now: float) -> EngineTiming:
        """Return where the latency inside the engine went, for a request that ends now."""
        return EngineTiming(
            queue_wait=(now if self.admitted is None else self.admitted) - self.queued,
            engine_boundary_exposed=self.boundary_seconds,
            program_submit_exposed=self.submit_seconds,
            program_post_exposed=self.post_seconds,
            engine_commit_output_exposed=self.output_seconds,
            engine_maintenance_exposed=self.maintenance_seconds,
            device_wait_exposed=self.device_wait_seconds,
            constraint_draft_wait_exposed=self.draft_wait_seconds,
            decode_host=self.decode_host_seconds,
            decode_device_wait=self.decode_device_seconds,
            prefill_units=self.prefill_units,
            decode_rounds=self.decode_rounds,
            control_units=self.control_units,
        )
