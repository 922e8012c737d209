"""What a finished request reports.

Units: seconds and tokens. Exposed waits are per-request latency and do not add up over a batch.
Source: specification 12.2; reference contract section 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from ninfer.contract.program import PrefixPath, ResumeRoute
from ninfer.contract.sampling import SamplingParameters
from ninfer.contract.tools import ToolCall, ToolCallParse


class FinishReason(Enum):
    """Why a request ended."""

    NONE = "none"
    """Nothing was asked for beyond processing the prompt."""
    OUTPUT_LIMIT = "output_limit"
    CONTEXT_CAPACITY = "context_capacity"
    STOP_TOKEN = "stop_token"
    STOP_STRING = "stop_string"
    CANCELLED = "cancelled"


class ConstraintBranch(Enum):
    """Which published form the answer took."""

    UNDECIDED = "undecided"
    CONTENT = "content"
    TOOLS = "tools"


class CacheOutcome(Enum):
    """How the compiled grammar was had: found, built here, or waited for another build."""

    HIT = "hit"
    BUILT = "built"
    WAITED = "waited"


@dataclass(frozen=True, slots=True)
class ConstraintReport:
    """What was enforced, from committed state.

    ``complete`` says the answer may end here, ``terminated`` that EOS was accepted. Seconds are CPU
    work, also where it was rolled back; they overlap device time and are never added to wall time.
    """

    branch: ConstraintBranch
    complete: bool
    terminated: bool
    cache: CacheOutcome
    mask_positions: int = 0
    mask_upload_bytes: int = 0
    timings_collected: bool = False
    prepare_seconds: float = 0.0
    mask_seconds: float = 0.0
    matcher_seconds: float = 0.0

    def record(self) -> dict[str, object]:
        """Return the one JSON shape of every entry: command line, HTTP, log and benches.

        ``timings_seconds`` is None where nobody asked for phase timings.
        """
        return {
            "branch": self.branch.value,
            "complete": self.complete,
            "terminated": self.terminated,
            "cache": self.cache.value,
            "mask_positions": self.mask_positions,
            "mask_upload_bytes": self.mask_upload_bytes,
            "timings_seconds": {
                "prepare": self.prepare_seconds,
                "mask": self.mask_seconds,
                "matcher": self.matcher_seconds,
            }
            if self.timings_collected
            else None,
        }


@dataclass(frozen=True, slots=True)
class ThinkingReport:
    """How the thinking budget was used; injected tokens count as output, not as thinking."""

    requested_budget: int | None = None
    effective_budget: int | None = None
    model_thinking_tokens: int = 0
    injected_tokens: int = 0
    applied: bool = False


@dataclass(frozen=True, slots=True)
class SessionOutput:
    """The whole published output of one session."""

    content: str
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_parse: ToolCallParse = ToolCallParse()
    reasoning_tokens: int = 0
    matched_stop_string: str | None = None


@dataclass(frozen=True, slots=True)
class PromptReport:
    """What the prompt became."""

    prompt_tokens: int
    starts_in_reasoning: bool = False
    has_media: bool = False


@dataclass(frozen=True, slots=True)
class Timings:
    """Wall clock of one request.

    ``prepare`` includes the session's; ``first_token`` runs from submit entry to the first
    committed token, ``first_output`` to the first published text; ``total`` from prepare entry to
    the end.
    """

    prepare: float = 0.0
    first_token: float = 0.0
    first_output: float = 0.0
    vision: float = 0.0
    prefill: float = 0.0
    decode: float = 0.0
    prompt_wall: float = 0.0
    generation_wall: float = 0.0
    total: float = 0.0


@dataclass(frozen=True, slots=True)
class EngineTiming:
    """Where a request's latency went inside the engine.

    ``constraint_draft_wait_exposed`` is a part of ``device_wait_exposed``.
    """

    queue_wait: float = 0.0
    engine_boundary_exposed: float = 0.0
    program_submit_exposed: float = 0.0
    program_post_exposed: float = 0.0
    engine_commit_output_exposed: float = 0.0
    engine_maintenance_exposed: float = 0.0
    device_wait_exposed: float = 0.0
    constraint_draft_wait_exposed: float = 0.0
    decode_host: float = 0.0
    decode_device_wait: float = 0.0
    prefill_units: int = 0
    decode_rounds: int = 0
    control_units: int = 0


@dataclass(frozen=True, slots=True)
class SpeculativeReport:
    """What speculation did; a round with extent 0 is a fallback step, not a round."""

    backend: str = "none"
    enabled: bool = False
    draft_window: int = 0
    rounds: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    fallback_steps: int = 0
    accepted_per_position: tuple[int, ...] = ()


class SchedulingTransition(Enum):
    """Observable steps of pause and resume."""

    PAUSE_STARTED = "pause_started"
    PAUSED = "paused"
    RESTORE_STARTED = "restore_started"
    RESTORED = "restored"
    REPLAY_COMPLETE = "replay_complete"
    RECOVERY_COMPLETE = "recovery_complete"
    SNAPSHOT_REVOKED = "snapshot_revoked"
    TERMINAL = "terminal"


@dataclass(frozen=True, slots=True)
class SchedulingEvent:
    """One transition with the route it belongs to."""

    transition: SchedulingTransition
    route: ResumeRoute = ResumeRoute.NONE


@dataclass(frozen=True, slots=True)
class SchedulingReport:
    """How often and how a request was set aside."""

    preemptions: int = 0
    snapshot_restores: int = 0
    replay_restores: int = 0
    replayed_tokens: int = 0
    paused_ns: int = 0
    device_to_host_bytes: int = 0
    host_to_device_bytes: int = 0


@dataclass(frozen=True, slots=True)
class GenerationResult:
    """Everything one finished request reports."""

    engine_request_id: int
    prompt: PromptReport
    generated_token_ids: tuple[int, ...]
    output: SessionOutput
    finish_reason: FinishReason
    sampling: SamplingParameters
    reused_prompt_tokens: int = 0
    computed_prefill_tokens: int = 0
    prefix_reuse_path: PrefixPath = PrefixPath.ROOT
    timings: Timings = field(default_factory=Timings)
    engine_timing: EngineTiming = field(default_factory=EngineTiming)
    scheduling: SchedulingReport = field(default_factory=SchedulingReport)
    speculative: SpeculativeReport = field(default_factory=SpeculativeReport)
    thinking: ThinkingReport | None = None
    constraint: ConstraintReport | None = None

    @property
    def content(self) -> str:
        """Return the published content."""
        return self.output.content

    @property
    def tokens_per_second(self) -> float:
        """Return decode speed; the first token belongs to prefill."""
        later = len(self.generated_token_ids) - 1
        return later / self.timings.decode if later > 0 and self.timings.decode > 0 else 0.0
