"""What the routes of one app share."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import cast

from sanic import Request
from sanic.response import HTTPResponse

from ninfer.gateway.failure import Failure, Fields, WireError, describe
from ninfer.gateway.generation import GenerationService
from ninfer.gateway.options import ServerOptions
from ninfer.gateway.wire import write_body
from ninfer.runtime import Metric, MetricKind


@dataclass(slots=True)
class ServerCounts:
    """What the server counts itself; only the event loop changes it."""

    response_failures: int = 0

    def families(self) -> list[Metric]:
        """Return the metric families."""
        description = "Replies that failed on the server's side."
        samples = (((), float(self.response_failures)),)
        kind = MetricKind.COUNTER
        return [Metric("ninfer_response_failures_total", kind, description, samples)]


@dataclass(frozen=True, slots=True)
class Gateway:
    """The engine's service and the server's fixed choices."""

    service: GenerationService
    options: ServerOptions
    counts: ServerCounts = field(default_factory=ServerCounts)

    def require_model(self, name: str) -> None:
        """Check that a request names the served model.

        Raises: WireError — it names another one.
        """
        if name != self.options.model_id:
            fact = f"{name!r} is not served; {self.options.model_id!r} is"
            raise WireError(fact, param="model", code="model_not_found", status=404)


def gateway_of(request: Request) -> Gateway:
    """Return what the app of a request shares."""
    return cast(Gateway, request.app.ctx.gateway)


def json_response(record: object, status: int = 200) -> HTTPResponse:
    """Return a reply with a JSON body."""
    return HTTPResponse(write_body(record), status=status, content_type="application/json")


def request_id_of(request: Request) -> str:
    """Return the id a client can quote; made on first use."""
    if not hasattr(request.ctx, "request_id"):
        request.ctx.request_id = f"req_{secrets.token_hex(12)}"
    return cast(str, request.ctx.request_id)


def remember_fields(request: Request, fields: Fields) -> None:
    """Keep how a request's errors are to name its fields."""
    request.ctx.fields = fields


def fields_of(request: Request) -> Fields:
    """Return how a request's errors name its fields."""
    return cast(Fields, getattr(request.ctx, "fields", Fields()))


def failure_of(request: Request, error: Exception) -> Failure:
    """Return what to tell the client about an error, and count it if it is the server's."""
    failure = describe(error, fields_of(request))
    if failure.status >= 500:
        gateway_of(request).counts.response_failures += 1
    return failure
