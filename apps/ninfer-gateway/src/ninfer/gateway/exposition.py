"""``GET /metrics``: the engine's metric families in the Prometheus text format."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sanic import Blueprint, Request
from sanic.response import HTTPResponse

from ninfer.gateway.state import gateway_of
from ninfer.runtime import HistogramValue, Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

metrics = Blueprint("metrics")


@metrics.get("/metrics")
async def show_metrics(request: Request) -> HTTPResponse:
    """Show every family of the engine, and what the server itself counts."""
    gateway = gateway_of(request)
    families = gateway.service.engine.metrics(gateway.options.model_id)
    return HTTPResponse(
        exposition([*families, *gateway.counts.families()]), content_type=CONTENT_TYPE
    )


def exposition(families: list[Metric]) -> str:
    """Return families in text format 0.0.4."""
    return "".join(line + "\n" for family in families for line in _lines(family))


def _lines(family: Metric) -> Iterator[str]:
    yield f"# HELP {family.name} {family.description}"
    yield f"# TYPE {family.name} {family.kind.value}"
    for labels, value in family.samples:
        if isinstance(value, HistogramValue):
            yield from _histogram(family.name, labels, value)
        else:
            yield f"{family.name}{_labels(labels)} {_number(value)}"


def _histogram(
    name: str, labels: tuple[tuple[str, str], ...], value: HistogramValue
) -> Iterator[str]:
    for bound, count in value.buckets:
        yield f"{name}_bucket{_labels((*labels, ('le', _number(bound))))} {count}"
    yield f"{name}_sum{_labels(labels)} {_number(value.total)}"
    yield f"{name}_count{_labels(labels)} {value.buckets[-1][1]}"


def _labels(labels: tuple[tuple[str, str], ...]) -> str:
    if not labels:
        return ""
    written = (f'{name}="{text.translate(_ESCAPES)}"' for name, text in labels)
    return f"{{{','.join(written)}}}"


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(value)
