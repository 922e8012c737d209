"""``GET /health``: whether the engine takes requests."""

from __future__ import annotations

from sanic import Blueprint, Request
from sanic.response import HTTPResponse

from ninfer.gateway.state import gateway_of
from ninfer.gateway.wire import write_body

health = Blueprint("health")


@health.get("/health")
async def show_health(request: Request) -> HTTPResponse:
    """Answer 200 while the engine takes requests, 503 once it does not."""
    ready = gateway_of(request).service.engine.is_available
    body = write_body({"status": "ok" if ready else "unavailable"})
    return HTTPResponse(body, status=200 if ready else 503, content_type="application/json")
