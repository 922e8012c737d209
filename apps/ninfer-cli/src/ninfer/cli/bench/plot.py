"""The chart of a benchmark: prompt speed and answer speed of every case."""

from __future__ import annotations

from ninfer.cli.bench.chart import Bar, Panel, bar_chart
from ninfer.cli.bench.measure import Measurement
from ninfer.cli.bench.record import Report


def plot(report: Report) -> str:
    """Return a benchmark as an SVG document; a case without later tokens has no answer speed."""
    prefill = [_bar(measurement, "prefill_tok_s") for measurement in report.measurements]
    decode = [_bar(measurement, "decode_tok_s") for measurement in report.measurements]
    return bar_chart(
        f"ninfer bench: {report.load.model}",
        [
            Panel("Prompt tokens per second", [bar for bar in prefill if bar.value]),
            Panel("Answer tokens per second, all rows", [bar for bar in decode if bar.value]),
        ],
    )


def _bar(measurement: Measurement, rate: str) -> Bar:
    case, spread = measurement.case, measurement.spread(rate)
    return Bar(case.label, case.constraint.value, spread.mean, spread.deviation)
