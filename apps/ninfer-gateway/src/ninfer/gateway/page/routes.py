"""``GET /`` and ``GET /openapi.json``."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from sanic import Blueprint, Request
from sanic.response import HTTPResponse

from ninfer.gateway.page.openapi import document
from ninfer.gateway.state import gateway_of, json_response

# The page loads nothing from anywhere else, and may not.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
)

page = Blueprint("page")


@page.get("/")
async def show_page(request: Request) -> HTTPResponse:
    """Show the page."""
    headers = {"content-security-policy": _POLICY}
    return HTTPResponse(_page(), content_type="text/html; charset=utf-8", headers=headers)


@page.get("/openapi.json")
async def show_openapi(request: Request) -> HTTPResponse:
    """Show the endpoints and their request bodies for programs."""
    return json_response(document(gateway_of(request).options.model_id))


@cache
def _page() -> str:
    return files("ninfer.gateway.page").joinpath("index.html").read_text(encoding="utf-8")
