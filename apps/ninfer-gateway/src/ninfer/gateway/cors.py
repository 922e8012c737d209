"""Pages of another origin: preflight answers and the headers that let them read replies."""

from __future__ import annotations

from sanic import Request
from sanic.response import BaseHTTPResponse, HTTPResponse

from ninfer.gateway.state import gateway_of

_PREFLIGHT_SECONDS = "600"


async def answer_preflight(request: Request) -> HTTPResponse | None:
    """Answer a browser that asks before it sends, where an origin is allowed."""
    is_preflight = request.method == "OPTIONS" and "origin" in request.headers
    if not is_preflight or gateway_of(request).options.cors_origin is None:
        return None
    asked = request.headers.get("access-control-request-headers", "*")
    headers = {
        "access-control-allow-methods": "GET, POST, DELETE, OPTIONS",
        "access-control-allow-headers": asked,
        "access-control-max-age": _PREFLIGHT_SECONDS,
    }
    return HTTPResponse(status=204, headers=headers)


async def allow_origin(request: Request, response: BaseHTTPResponse) -> None:
    """Name the allowed origin on every reply."""
    origin = gateway_of(request).options.cors_origin
    if origin is None:
        return
    response.headers["access-control-allow-origin"] = origin
    response.headers["access-control-expose-headers"] = "x-request-id, request-id"
    if origin != "*":
        response.headers["vary"] = "origin"
