"""Server-sent events on one response."""

from __future__ import annotations

from typing import Any

from sanic import Request
from sanic.response import HTTPResponse

from ninfer.gateway.wire import write_body

_CONTENT_TYPE = "text/event-stream; charset=utf-8"
_LINE_ENDS = "\u0085\u2028\u2029"
"""What JSON leaves unescaped and text libraries take for the end of a line."""
_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}


class EventStream:
    """A response that sends whole events; sending waits while the client does not read."""

    def __init__(self, response: HTTPResponse) -> None:
        self._response = response

    @classmethod
    async def open(cls, request: Request) -> EventStream:
        """Start the response; from here on failures travel inside the stream."""
        response = await request.respond(content_type=_CONTENT_TYPE, headers=dict(_HEADERS))
        return cls(response)

    async def send(self, record: Any, event: str | None = None) -> None:
        """Send one event with a JSON body."""
        name = b"" if event is None else f"event: {event}\n".encode()
        await self._response.send(name + b"data: " + _one_line(write_body(record)) + b"\n\n")

    async def send_word(self, word: str) -> None:
        """Send one event whose body is a bare word."""
        await self._response.send(f"data: {word}\n\n".encode())

    async def keep_alive(self) -> None:
        """Send a comment, which clients skip."""
        await self._response.send(b": keep-alive\n\n")

    async def close(self) -> None:
        """End the response."""
        await self._response.send(end_stream=True)


def _one_line(body: bytes) -> bytes:
    # Events end at LF and CR alone, but many clients split text where Unicode breaks lines.
    for line_end in _LINE_ENDS:
        body = body.replace(line_end.encode(), f"\\u{ord(line_end):04x}".encode())
    return body
