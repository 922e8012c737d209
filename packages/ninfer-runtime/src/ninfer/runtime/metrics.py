"""Engine statistics as metric families, for whoever exposes them.

Knows the names and the fixed labels; does not know Prometheus. Labels never hold a constraint's
or a prompt's text. Source: reference contract section 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from ninfer.contract import EngineOptions, ProgramShape, WarmUpReport
from ninfer.runtime.counters import SECONDS_BUCKETS, EngineStats, Histogram

Labels = tuple[tuple[str, str], ...]


class MetricKind(Enum):
    """How a family's values behave."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class HistogramValue:
    """A histogram: cumulative counts per upper bound, the last one infinite, and the sum."""

    buckets: tuple[tuple[float, int], ...]
    total: float


@dataclass(frozen=True, slots=True)
class Metric:
    """One family; counters carry their ``_total`` in the name."""

    name: str
    kind: MetricKind
    description: str
    samples: tuple[tuple[Labels, float | HistogramValue], ...]


def engine_metrics(
    stats: EngineStats,
    options: EngineOptions,
    shape: ProgramShape,
    *,
    model: str,
    is_ready: bool,
    warm_up: WarmUpReport | None = None,
) -> list[Metric]:
    """Return every family of an engine; those of a warm-up once it ended."""
    return [
        Metric(
            "ninfer_model_info",
            MetricKind.GAUGE,
            "The served model.",
            (((("model", model), ("speculative", options.speculative.value)), 1.0),),
        ),
        _gauge("engine_ready", "Whether the engine takes requests.", float(is_ready)),
        _gauge("max_concurrency", "Requests that run at once.", options.max_concurrency),
        _gauge("max_context_tokens", "Tokens of one sequence.", shape.context_tokens),
        *_request_gauges(stats),
        *_memory_gauges(stats),
        *_token_counters(stats),
        *_scheduling_counters(stats),
        *_constraint_counters(stats),
        *_time_counters(stats),
        *_warm_up_gauges(warm_up),
        _histogram("time_to_first_token_seconds", "From submission.", stats.first_token_seconds),
        _histogram("request_duration_seconds", "From preparation.", stats.duration_seconds),
        _histogram("request_queue_seconds", "From queue to lane.", stats.queue_seconds),
    ]


def _request_gauges(stats: EngineStats) -> list[Metric]:
    return [
        _gauge("requests_running", "Requests that hold a lane.", stats.requests_running),
        _gauge("requests_waiting", "Requests that wait for a lane.", stats.requests_waiting),
        _gauge("requests_paused", "Requests set aside.", stats.requests_paused),
        _gauge("requests_prefilling", "Requests in their prompt.", stats.requests_prefilling),
        _gauge("requests_decode_ready", "Requests that decode.", stats.requests_decode_ready),
        _gauge("requests_replaying", "Requests computed again.", stats.requests_replaying),
        _gauge("requests_outstanding", "Request slots in use.", stats.requests_outstanding),
    ]


def _memory_gauges(stats: EngineStats) -> list[Metric]:
    usage = stats.usage
    return [
        _gauge("device_kv_used_pages", "KV pages in use.", usage.kv_used_pages),
        _gauge("device_kv_cached_pages", "KV pages kept for reuse.", usage.kv_cached_pages),
        _gauge("device_kv_capacity_pages", "KV pages in all.", usage.kv_capacity_pages),
        _gauge("device_state_used_slots", "Recurrent states in use.", usage.state_used_slots),
        _gauge(
            "device_state_capacity_slots", "Recurrent states in all.", usage.state_capacity_slots
        ),
        _gauge("host_context_used_bytes", "Host bytes of snapshots.", stats.host_context_bytes),
    ]


def _token_counters(stats: EngineStats) -> list[Metric]:
    return [
        _counter("prompt_tokens", "Prompt tokens of ended requests.", stats.prompt_tokens),
        _counter("prompt_tokens_cached", "Of these, reused.", stats.prompt_tokens_cached),
        _counter("prefill_tokens", "Prompt tokens computed.", stats.prefill_tokens),
        _counter("replayed_tokens", "Tokens computed again.", stats.replayed_tokens),
        _counter("generation_tokens", "Tokens generated.", stats.generation_tokens),
        _counter("decode_tokens", "Of these, after the first.", stats.decode_tokens),
        _counter("spec_decode_rounds", "Rounds with drafts.", stats.spec_rounds),
        _counter("spec_decode_draft_tokens", "Drafts verified.", stats.spec_draft_tokens),
        _counter("spec_decode_accepted_tokens", "Drafts accepted.", stats.spec_accepted_tokens),
        _counter("spec_decode_fallback_steps", "Rounds without.", stats.spec_fallback_steps),
    ]


def _scheduling_counters(stats: EngineStats) -> list[Metric]:
    transfers = {"device_to_host": stats.device_to_host_bytes}
    transfers["host_to_device"] = stats.host_to_device_bytes
    return [
        _counter("preemptions", "Requests set aside.", stats.preemptions),
        _counter("snapshot_restores", "Restored from a copy.", stats.snapshot_restores),
        _counter("replay_restores", "Restored by computing.", stats.replay_restores),
        Metric(
            "ninfer_context_transfer_bytes_total",
            MetricKind.COUNTER,
            "Bytes moved by pauses and restores.",
            tuple(
                ((("resource", "context"), ("direction", direction)), float(count))
                for direction, count in transfers.items()
            ),
        ),
        _labelled("requests", "Requests by outcome.", "outcome", stats.outcomes),
    ]


def _constraint_counters(stats: EngineStats) -> list[Metric]:
    return [
        _labelled(
            "constraint_requests", "By how they ended.", "outcome", stats.constraint_outcomes
        ),
        _labelled("constraint_cache", "How grammars were had.", "result", stats.constraint_cache),
        _counter("constraint_dead_ends", "Rows that met an empty set.", stats.dead_ends),
        _counter("constraint_mask_positions", "Masks filled.", stats.constraint_mask_positions),
        _counter(
            "constraint_mask_upload_bytes", "Mask bytes moved.", stats.constraint_mask_upload_bytes
        ),
        _counter(
            "constraint_prepare_seconds", "CPU of preparation.", stats.constraint_prepare_seconds
        ),
        _counter("constraint_mask_seconds", "CPU of masks.", stats.constraint_mask_seconds),
        _counter(
            "constraint_matcher_seconds", "CPU of matchers.", stats.constraint_matcher_seconds
        ),
        _counter("constraint_draft_wait_seconds", "Waits for drafts.", stats.draft_wait_seconds),
    ]


def _time_counters(stats: EngineStats) -> list[Metric]:
    return [
        _labelled("host_work_seconds", "Worker time by phase.", "phase", stats.host_seconds),
        _counter("device_wait_seconds", "Waits for the device.", stats.device_wait_seconds),
    ]


def _warm_up_gauges(report: WarmUpReport | None) -> list[Metric]:
    if report is None:
        return []
    counts = {"done": len(report.done), "left_out": len(report.left_out)}
    return [
        Metric(
            "ninfer_warm_up_languages",
            MetricKind.GAUGE,
            "Languages warmed at the start.",
            tuple(((("outcome", outcome),), float(n)) for outcome, n in counts.items()),
        ),
        _gauge("warm_up_seconds", "What that took, beside requests.", report.seconds),
        _gauge("warm_up_cache_bytes", "Grammars and masks at its end.", report.cache_bytes),
    ]


def _gauge(name: str, description: str, value: float) -> Metric:
    return Metric(f"ninfer_{name}", MetricKind.GAUGE, description, (((), float(value)),))


def _counter(name: str, description: str, value: float) -> Metric:
    return Metric(f"ninfer_{name}_total", MetricKind.COUNTER, description, (((), float(value)),))


def _labelled(name: str, description: str, label: str, values: Mapping[str, float]) -> Metric:
    samples = tuple((((label, key),), float(value)) for key, value in values.items())
    return Metric(f"ninfer_{name}_total", MetricKind.COUNTER, description, samples)


def _histogram(name: str, description: str, histogram: Histogram) -> Metric:
    buckets, count = [], 0
    for bound, new in zip((*SECONDS_BUCKETS, float("inf")), histogram.counts, strict=True):
        count += new
        buckets.append((bound, count))
    value = HistogramValue(tuple(buckets), histogram.total)
    return Metric(f"ninfer_{name}", MetricKind.HISTOGRAM, description, (((), value),))
