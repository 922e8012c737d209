"""What the routes of one app share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from sanic import Request

from ninfer.gateway.failure import Fields, WireError
from ninfer.gateway.generation import GenerationService
from ninfer.gateway.options import ServerOptions


@dataclass(frozen=True, slots=True)
class Gateway:
    """The engine's service and the server's fixed choices."""

    service: GenerationService
    options: ServerOptions

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


def remember_fields(request: Request, fields: Fields) -> None:
    """Keep how a request's errors are to name its fields."""
    request.ctx.fields = fields


def fields_of(request: Request) -> Fields:
    """Return how a request's errors name its fields."""
    return cast(Fields, getattr(request.ctx, "fields", Fields()))
