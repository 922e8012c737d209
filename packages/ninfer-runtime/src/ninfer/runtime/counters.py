"""Engine-wide counters and gauges, written by the worker and read by anyone.

Counters of requests settle when a request ends; the draft wait is counted live, once per batch.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from copy import deepcopy
from dataclasses import dataclass, field
from enum import Enum

from ninfer.contract import CacheOutcome, ConstraintReport, GenerationResult, ProgramUsage
from ninfer.runtime.clocks import UnitCost

SECONDS_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)

CONSTRAINT_OUTCOMES = ("terminated", "complete_interrupted", "incomplete_interrupted")


class Outcome(Enum):
    """How a request ended, for the counters."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"
    REJECTED = "rejected"


@dataclass(slots=True)
class Histogram:
    """Counts per upper bound, with one more for everything above the last."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(SECONDS_BUCKETS) + 1))
    total: float = 0.0

    def observe(self, seconds: float) -> None:
        """Count one value."""
        self.counts[bisect_left(SECONDS_BUCKETS, seconds)] += 1
        self.total += seconds


@dataclass(slots=True)
class EngineStats:
    """Everything the engine counts; a snapshot is consistent per field, not across fields.

    Units: requests, tokens, rounds, bytes, seconds.
    """

    requests_running: int = 0
    requests_waiting: int = 0
    requests_paused: int = 0
    requests_prefilling: int = 0
    requests_decode_ready: int = 0
    requests_replaying: int = 0
    requests_outstanding: int = 0
    prompt_tokens: int = 0
    prompt_tokens_cached: int = 0
    prefill_tokens: int = 0
    replayed_tokens: int = 0
    generation_tokens: int = 0
    decode_tokens: int = 0
    spec_rounds: int = 0
    spec_draft_tokens: int = 0
    spec_accepted_tokens: int = 0
    spec_fallback_steps: int = 0
    preemptions: int = 0
    snapshot_restores: int = 0
    replay_restores: int = 0
    device_to_host_bytes: int = 0
    host_to_device_bytes: int = 0
    host_context_bytes: int = 0
    device_wait_seconds: float = 0.0
    draft_wait_seconds: float = 0.0
    constraint_prepare_seconds: float = 0.0
    constraint_mask_seconds: float = 0.0
    constraint_matcher_seconds: float = 0.0
    constraint_mask_positions: int = 0
    constraint_mask_upload_bytes: int = 0
    dead_ends: int = 0
    usage: ProgramUsage = ProgramUsage()
    host_seconds: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("submit", "commit", "output", "maintenance"), 0.0)
    )
    outcomes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(map(_value, Outcome), 0))
    constraint_outcomes: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(CONSTRAINT_OUTCOMES, 0)
    )
    constraint_cache: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(map(_value, CacheOutcome), 0)
    )
    first_token_seconds: Histogram = field(default_factory=Histogram)
    duration_seconds: Histogram = field(default_factory=Histogram)
    queue_seconds: Histogram = field(default_factory=Histogram)


class Counters:
    """The worker's own statistics; other threads take snapshots and count rejections."""

    def __init__(self) -> None:
        self.live = EngineStats()
        self._lock = threading.Lock()

    def snapshot(self) -> EngineStats:
        """Return an independent copy."""
        with self._lock:
            return deepcopy(self.live)

    def rejected(self) -> None:
        """Count a request that never reached the queue; called from any thread."""
        with self._lock:
            self.live.outcomes[Outcome.REJECTED.value] += 1

    def nobody_left(self) -> None:
        """Clear the gauges of an engine that ended."""
        for name in ("running", "waiting", "paused", "prefilling", "decode_ready", "replaying"):
            setattr(self.live, f"requests_{name}", 0)

    def unit(self, cost: UnitCost) -> None:
        """Count one unit of work."""
        live = self.live
        live.device_wait_seconds += cost.device_wait
        live.draft_wait_seconds += cost.draft_wait
        live.host_seconds["submit"] += cost.submit
        live.host_seconds["commit"] += cost.post
        live.host_seconds["output"] += cost.output

    def failed(self, *, dead_end: bool) -> None:
        """Count a request that ended with an error."""
        with self._lock:
            self.live.outcomes[Outcome.FAILED.value] += 1
            self.live.dead_ends += dead_end

    def ended(self, result: GenerationResult, *, cancelled: bool) -> None:
        """Count a request that ended with a result."""
        outcome = Outcome.CANCELLED if cancelled else Outcome.COMPLETED
        with self._lock:
            self.live.outcomes[outcome.value] += 1
            self._tokens(result)
            self._seconds(result)
            if result.constraint is not None:
                self._constraint(result.constraint)

    def _tokens(self, result: GenerationResult) -> None:
        live, generated = self.live, len(result.generated_token_ids)
        live.prompt_tokens += result.prompt.prompt_tokens
        live.prompt_tokens_cached += result.reused_prompt_tokens
        live.prefill_tokens += result.computed_prefill_tokens
        live.generation_tokens += generated
        live.decode_tokens += max(generated - 1, 0)
        live.spec_rounds += result.speculative.rounds
        live.spec_draft_tokens += result.speculative.drafted_tokens
        live.spec_accepted_tokens += result.speculative.accepted_tokens
        live.spec_fallback_steps += result.speculative.fallback_steps
        live.replayed_tokens += result.scheduling.replayed_tokens
        live.preemptions += result.scheduling.preemptions
        live.snapshot_restores += result.scheduling.snapshot_restores
        live.replay_restores += result.scheduling.replay_restores
        live.device_to_host_bytes += result.scheduling.device_to_host_bytes
        live.host_to_device_bytes += result.scheduling.host_to_device_bytes

    def _seconds(self, result: GenerationResult) -> None:
        if result.generated_token_ids:
            self.live.first_token_seconds.observe(result.timings.first_token)
        self.live.duration_seconds.observe(result.timings.total)
        self.live.queue_seconds.observe(result.engine_timing.queue_wait)

    def _constraint(self, report: ConstraintReport) -> None:
        live = self.live
        if report.terminated:
            outcome = "terminated"
        else:
            outcome = "complete_interrupted" if report.complete else "incomplete_interrupted"
        live.constraint_outcomes[outcome] += 1
        live.constraint_cache[report.cache.value] += 1
        live.constraint_mask_positions += report.mask_positions
        live.constraint_mask_upload_bytes += report.mask_upload_bytes
        live.constraint_prepare_seconds += report.prepare_seconds
        live.constraint_mask_seconds += report.mask_seconds
        live.constraint_matcher_seconds += report.matcher_seconds


def _value(member: Enum) -> str:
    return str(member.value)
