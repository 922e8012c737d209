"""The server's requests."""

from __future__ import annotations

from typing import Any

from sanic import Request
from sanic.exceptions import BadURL, URITooLong

_STAND_IN = "NONE"


class WireRequest(Request):
    """A request that can also stand in for one whose target was refused.

    Sanic answers such a failure on a request without a method, made with the same target, and
    would fail again: with a trace in the log, and without a reply.
    """

    def __init__(
        self, url_bytes: bytes, headers: Any, version: str, method: str, *rest: Any, **named: Any
    ) -> None:
        try:
            super().__init__(url_bytes, headers, version, method, *rest, **named)
        except (BadURL, URITooLong):
            if method != _STAND_IN:
                raise
            super().__init__(b"*", headers, version, method, *rest, **named)
