"""A benchmark as text: a table for readers, CSV with one line per repetition, JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from enum import Enum

from ninfer.cli.bench.measure import Measurement, Repetition, Spread
from ninfer.cli.bench.record import RATES, Report, acceptance, report_record
from ninfer.contract import GenerationResult

_COLUMNS = ("test", "constraint", "batch", "prefill tok/s", "decode tok/s", "mask µs", "tok/round")
_CSV_COLUMNS = (
    *("test", "constraint", "batch", "repetition", "prompt_tokens", "output_tokens"),
    *("wall_seconds", *RATES),
    *("prepare_seconds", "mask_seconds", "matcher_seconds", "mask_positions"),
    *("rounds", "drafted_tokens", "accepted_tokens", "fallback_steps"),
)


class OutputFormat(Enum):
    """How a benchmark is written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def formatted(report: Report, form: OutputFormat) -> str:
    """Return a benchmark as text that ends with a line break."""
    writers: dict[OutputFormat, Callable[[Report], str]] = {
        OutputFormat.TABLE: _table,
        OutputFormat.JSON: lambda found: json.dumps(report_record(found), indent=1) + "\n",
        OutputFormat.CSV: _csv,
    }
    return writers[form](report)


def mask_microseconds(results: list[GenerationResult]) -> float | None:
    """Return the mean cost of one mask position; None where nothing was masked."""
    reports = [result.constraint for result in results if result.constraint is not None]
    positions = sum(report.mask_positions for report in reports)
    return sum(report.mask_seconds for report in reports) * 1e6 / positions if positions else None


def _table(report: Report) -> str:
    rows = [_COLUMNS, *(_cells(measurement) for measurement in report.measurements)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        f"model {report.load.model}, loaded in {report.load.seconds:.2f} s, weights "
        f"{report.memory.weight_bytes / 1e6:.1f} MB, key-value pool "
        f"{report.memory.kv_bytes / 1e6:.1f} MB"
    ]
    for row in rows:
        texts = [cell.ljust(width) for cell, width in zip(row[:2], widths[:2], strict=True)]
        counts = [cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
        lines.append("  ".join([*texts, *counts]).rstrip())
    return "\n".join(lines) + "\n"


def _cells(measurement: Measurement) -> tuple[str, ...]:
    case, results = measurement.case, measurement.results
    has_decode = any(repetition.decode_tok_s for repetition in measurement.repetitions)
    mask = mask_microseconds(results)
    rounds = [
        acceptance(r.speculative)["tokens_per_round"] for r in results if r.speculative.rounds
    ]
    return (
        case.test.name,
        case.constraint.value,
        str(case.rows),
        _spread(measurement.spread("prefill_tok_s")),
        _spread(measurement.spread("decode_tok_s")) if has_decode else "-",
        "-" if mask is None else f"{mask:.1f}",
        f"{sum(rounds) / len(rounds):.2f}" if rounds else "-",
    )


def _spread(spread: Spread) -> str:
    return f"{spread.mean:.1f} ± {spread.deviation:.1f}"


def _csv(report: Report) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_CSV_COLUMNS)
    for measurement in report.measurements:
        for index, repetition in enumerate(measurement.repetitions):
            writer.writerow(_csv_row(measurement, index, repetition))
    return text.getvalue()


def _csv_row(
    measurement: Measurement, index: int, repetition: Repetition
) -> Iterator[str | int | float]:
    case, results = measurement.case, repetition.results
    constraints = [result.constraint for result in results if result.constraint is not None]
    speculative = [result.speculative for result in results]
    yield from (case.test.name, case.constraint.value, case.rows, index)
    yield from (case.test.prompt_tokens, repetition.output_tokens, repetition.wall_seconds)
    yield from (getattr(repetition, rate) for rate in RATES)
    yield sum(report.prepare_seconds for report in constraints)
    yield sum(report.mask_seconds for report in constraints)
    yield sum(report.matcher_seconds for report in constraints)
    yield sum(report.mask_positions for report in constraints)
    yield sum(report.rounds for report in speculative)
    yield sum(report.drafted_tokens for report in speculative)
    yield sum(report.accepted_tokens for report in speculative)
    yield sum(report.fallback_steps for report in speculative)
