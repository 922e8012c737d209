"""``GET /health``: whether the engine takes requests."""

from __future__ import annotations

from sanic import Blueprint, Request
from sanic.response import HTTPResponse

from ninfer.gateway.state import gateway_of, json_response

health = Blueprint("health")


@health.get("/health")
async def show_health(request: Request) -> HTTPResponse:
    """Answer 200 while the engine takes requests, 503 once it does not."""
    ready = gateway_of(request).service.engine.is_available
    return json_response({"status": "ok" if ready else "unavailable"}, 200 if ready else 503)
