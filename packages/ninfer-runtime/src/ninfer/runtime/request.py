"""One request as the worker sees it; after submission only the worker touches it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from ninfer.contract import (
    OutputSession,
    PrefixPath,
    RequestOptions,
    ResumeState,
    SamplingParameters,
    SequenceId,
)
from ninfer.runtime.clocks import RequestClock
from ninfer.runtime.outlet import Outlet
from ninfer.runtime.prepared import Prepared


class Phase(Enum):
    """Where a request is in its life."""

    WAITING = "waiting"
    PREFILL = "prefill"
    REPLAY = "replay"
    DECODE = "decode"
    CONTROL = "control"
    PAUSED = "paused"
    ENDED = "ended"


@dataclass(slots=True)
class SpeculationTally:
    """What speculation did for one request; rounds without drafts are fallback steps."""

    rounds: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    fallback_steps: int = 0
    accepted_per_position: list[int] = field(default_factory=list)


@dataclass(slots=True)
class MaskTally:
    """Mask work of one request; work that was rolled back stays counted."""

    positions: int = 0
    upload_bytes: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class SchedulingTally:
    """How often and how a request was set aside."""

    preemptions: int = 0
    snapshot_restores: int = 0
    replay_restores: int = 0
    replayed_tokens: int = 0
    device_to_host_bytes: int = 0
    host_to_device_bytes: int = 0


@dataclass(slots=True, eq=False)
class EngineRequest:
    """The record of one request from the queue to its end.

    ``output_limit`` bounds the answer. Lane, row and sequence are where it runs now, never what it
    is.
    """

    request_id: int
    prepared: Prepared
    options: RequestOptions
    session: OutputSession
    sampling: SamplingParameters
    output_limit: int
    deadline: float
    outlet: Outlet
    clock: RequestClock
    initial_mask: bytes | None = None
    phase: Phase = Phase.WAITING
    sequence: SequenceId | None = None
    resume: ResumeState | None = None
    needs_control: bool = False
    is_restoring: bool = False
    last_chunk: int = 0
    has_started: bool = False
    tokens: list[int] = field(default_factory=list)
    matched_stop_string: str | None = None
    reused_tokens: int = 0
    computed_tokens: int = 0
    prefix_path: PrefixPath = PrefixPath.ROOT
    bypasses: int = 0
    masks: MaskTally = field(default_factory=MaskTally)
    speculation: SpeculationTally = field(default_factory=SpeculationTally)
    scheduling: SchedulingTally = field(default_factory=SchedulingTally)

    def prompt_starts_again(self, reused_tokens: int) -> None:
        """Count a prompt that was set aside before its end and is opened again.

        Math: reused + computed = what of the prompt lies in memory; the rest of what lay there
              before is replayed, so that both add up to the prompt at its end.
        """
        before = self.reused_tokens + self.computed_tokens
        self.scheduling.replayed_tokens += max(before - reused_tokens, 0)
        kept = min(self.reused_tokens, reused_tokens)
        self.computed_tokens = min(before, reused_tokens) - kept
        self.reused_tokens = reused_tokens - self.computed_tokens

    @property
    def is_constrained(self) -> bool:
        """Return whether a matcher holds the answer."""
        return self.session.matcher is not None

    @property
    def resident(self) -> SequenceId:
        """Return the sequence of a resident request."""
        assert self.sequence is not None
        return self.sequence
