"""A benchmark as plain JSON values."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, NamedTuple

from ninfer.cli.bench.measure import Measurement, Repetition
from ninfer.contract import EngineOptions, GenerationResult, MemoryReport, SpeculativeReport

SCHEMA_VERSION = 1
RATES = ("prefill_tok_s", "decode_tok_s", "decode_engine_tok_s")


class Load(NamedTuple):
    """What was opened and how long it took; ``model`` and ``device`` as they were asked for."""

    model: str
    device: str
    seconds: float


class Report(NamedTuple):
    """Everything a benchmark found."""

    load: Load
    options: EngineOptions
    memory: MemoryReport
    measurements: list[Measurement]


def report_record(report: Report) -> dict[str, Any]:
    """Return the whole benchmark."""
    options = asdict(report.options)
    options["speculative"] = report.options.speculative.value
    return {
        "schema_version": SCHEMA_VERSION,
        "load": report.load._asdict(),
        "memory": asdict(report.memory),
        "options": options,
        "tests": [_measurement(measurement) for measurement in report.measurements],
    }


def acceptance(report: SpeculativeReport) -> dict[str, float]:
    """Return what speculation brought.

    Math: rate = accepted / drafted; tokens per round = 1 + accepted / rounds; 0 without rounds.
    """
    drafted, rounds, accepted = report.drafted_tokens, report.rounds, report.accepted_tokens
    return {
        "acceptance_rate": accepted / drafted if drafted else 0.0,
        "tokens_per_round": 1 + accepted / rounds if rounds else 0.0,
    }


def _measurement(measurement: Measurement) -> dict[str, Any]:
    case = measurement.case
    return {
        "name": case.test.name,
        "constraint": case.constraint.value,
        "batch": case.rows,
        "prompt_tokens": case.test.prompt_tokens,
        "output_limit": case.test.output_tokens,
        **{rate: measurement.spread(rate)._asdict() for rate in RATES},
        "repetitions": [_repetition(repetition) for repetition in measurement.repetitions],
    }


def _repetition(repetition: Repetition) -> dict[str, Any]:
    return {
        "wall_seconds": repetition.wall_seconds,
        "output_tokens": repetition.output_tokens,
        **{rate: getattr(repetition, rate) for rate in RATES},
        "requests": [_request(result) for result in repetition.results],
    }


def _request(result: GenerationResult) -> dict[str, Any]:
    timings = result.timings
    return {
        "timings_seconds": {
            "prepare": timings.prepare,
            "first_token": timings.first_token,
            "prefill": timings.prefill,
            "decode": timings.decode,
            "total": timings.total,
        },
        "output_tokens": len(result.generated_token_ids),
        "finish_reason": result.finish_reason.value,
        "constraint": None if result.constraint is None else result.constraint.record(),
        "speculative": asdict(result.speculative) | acceptance(result.speculative),
    }
