"""Builds what a finished request reports, from committed state only."""

from __future__ import annotations

from dataclasses import replace

from ninfer.contract import (
    ConstraintReport,
    FinishReason,
    GenerationResult,
    SchedulingReport,
    SessionOutput,
    SpeculativeBackend,
    SpeculativeReport,
)
from ninfer.runtime.events import TimingSnapshot
from ninfer.runtime.request import EngineRequest, SpeculationTally


def build_result(
    request: EngineRequest,
    output: SessionOutput,
    reason: FinishReason,
    now: float,
    backend: SpeculativeBackend,
    draft_limit: int,
) -> GenerationResult:
    """Return the result of a request that ends now."""
    return GenerationResult(
        engine_request_id=request.request_id,
        prompt=request.prepared.prompt.report,
        generated_token_ids=tuple(request.tokens),
        output=output,
        finish_reason=reason,
        sampling=request.sampling,
        reused_prompt_tokens=request.reused_tokens,
        computed_prefill_tokens=request.computed_tokens,
        prefix_reuse_path=request.prefix_path,
        timings=request.clock.timings(now),
        engine_timing=request.clock.engine_timing(now),
        scheduling=scheduling_report(request),
        speculative=_speculative_report(request.speculation, backend, draft_limit),
        thinking=request.session.thinking_report(),
        constraint=constraint_report(request),
    )


def timing_snapshot(request: EngineRequest, now: float) -> TimingSnapshot:
    """Return how fast a request has been up to now."""
    timings = request.clock.timings(now)
    return TimingSnapshot(
        reused_prompt_tokens=request.reused_tokens,
        computed_prefill_tokens=request.computed_tokens,
        generated_tokens=len(request.tokens),
        prefill=timings.prefill,
        decode=timings.decode,
        drafted_tokens=request.speculation.drafted_tokens,
        accepted_tokens=request.speculation.accepted_tokens,
    )


def constraint_report(request: EngineRequest) -> ConstraintReport | None:
    """Return what was enforced, with the engine's own counts of mask work.

    Seconds appear only where the request asked for phase timings.
    """
    report = request.session.constraint_report()
    if report is None:
        return None
    return replace(
        report,
        mask_positions=request.masks.positions,
        mask_upload_bytes=request.masks.upload_bytes,
        mask_seconds=request.masks.seconds if request.options.phase_timings else 0.0,
    )


def scheduling_report(request: EngineRequest) -> SchedulingReport:
    """Return how a request was set aside."""
    tally = request.scheduling
    return SchedulingReport(
        preemptions=tally.preemptions,
        snapshot_restores=tally.snapshot_restores,
        replay_restores=tally.replay_restores,
        replayed_tokens=tally.replayed_tokens,
        paused_ns=int(request.clock.paused_seconds * 1e9),
        device_to_host_bytes=tally.device_to_host_bytes,
        host_to_device_bytes=tally.host_to_device_bytes,
    )


def _speculative_report(
    tally: SpeculationTally, backend: SpeculativeBackend, draft_limit: int
) -> SpeculativeReport:
    return SpeculativeReport(
        backend=backend.value,
        enabled=backend is not SpeculativeBackend.NONE,
        draft_window=draft_limit,
        rounds=tally.rounds,
        drafted_tokens=tally.drafted_tokens,
        accepted_tokens=tally.accepted_tokens,
        fallback_steps=tally.fallback_steps,
        accepted_per_position=tuple(tally.accepted_per_position),
    )
