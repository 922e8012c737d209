"""``GET /v1/models`` and ``/v1/models/{id}``."""

from __future__ import annotations

from urllib.parse import unquote

from sanic import Blueprint, Request
from sanic.response import HTTPResponse

from ninfer.gateway.state import Gateway, gateway_of, json_response

models = Blueprint("models")


@models.get("/v1/models")
async def list_models(request: Request) -> HTTPResponse:
    """List the one served model."""
    return json_response({"object": "list", "data": [_model(gateway_of(request))]})


@models.get("/v1/models/<name:path>")
async def show_model(request: Request, name: str) -> HTTPResponse:
    """Show the served model."""
    gateway = gateway_of(request)
    # Clients escape what a name holds, and names such as "owner/model" are the common ones.
    gateway.require_model(unquote(name))
    return json_response(_model(gateway))


def _model(gateway: Gateway) -> dict[str, object]:
    return {
        "id": gateway.options.model_id,
        "object": "model",
        "created": 0,
        "owned_by": "ninfer",
        "max_model_len": gateway.service.engine.shape.context_tokens,
    }
