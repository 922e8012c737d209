"""Where thinking ends and content begins, byte by byte.

The constrained rule is the one the grammar is built from; the free rule is looser.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ninfer.contract import Channel
from ninfer.qwen_frontend.facts import ReasoningMarkers
from ninfer.qwen_frontend.overlap import overlap

_WHITE_SPACE = b" \t\r\n\v\f"


class Segment(NamedTuple):
    """Bytes that belong to one channel."""

    channel: Channel
    data: bytes


class Stage(Protocol):
    """Splits an answer's bytes into channels; framing belongs to none."""

    @property
    def in_reasoning(self) -> bool:
        """Return whether the answer is still thinking."""
        ...

    def fork(self) -> Stage:
        """Return an independent stage at the same position."""
        ...

    def feed(self, data: bytes) -> list[Segment]:
        """Return the bytes whose channel became certain."""
        ...

    def finish(self) -> list[Segment]:
        """Return the bytes held back; the answer ends here."""
        ...


class ContentStage:
    """Everything is content."""

    __slots__ = ()

    @property
    def in_reasoning(self) -> bool:
        """Return False."""
        return False

    def fork(self) -> ContentStage:
        """Return this stage, which has no state."""
        return self

    def feed(self, data: bytes) -> list[Segment]:
        """Return ``data`` as content."""
        return [Segment(Channel.CONTENT, data)] if data else []

    def finish(self) -> list[Segment]:
        """Return nothing."""
        return []


class CanonicalStage:
    """Thinking that only the exact bytes of the canonical close can end.

    Math:   reasoning is everything before the first occurrence of the close, content everything
            after it, byte for byte.
    Source: specification 5.1.
    """

    __slots__ = ("_close", "_held", "_is_open")

    def __init__(self, markers: ReasoningMarkers) -> None:
        self._close = markers.canonical_close.encode()
        self._held = b""
        self._is_open = True

    @property
    def in_reasoning(self) -> bool:
        """Return whether the close has not been seen."""
        return self._is_open

    def fork(self) -> CanonicalStage:
        """Return an independent stage at the same position."""
        twin = object.__new__(CanonicalStage)
        twin._close, twin._held, twin._is_open = self._close, self._held, self._is_open
        return twin

    def feed(self, data: bytes) -> list[Segment]:
        """Return reasoning before the close and content after it."""
        if not self._is_open:
            return _segments(b"", data)
        data = self._held + data
        at = data.find(self._close)
        if at >= 0:
            self._is_open, self._held = False, b""
            return _segments(data[:at], data[at + len(self._close) :])
        cut = len(data) - overlap(data, self._close)
        self._held = data[cut:]
        return _segments(data[:cut], b"")

    def finish(self) -> list[Segment]:
        """Return a part of the close that was never completed; it is reasoning."""
        held, self._held = self._held, b""
        return _segments(held, b"")


class FreeStage:
    """Thinking of an answer without a guarantee.

    Math:   the close marker ends it only before CR, LF or the end of the answer (a quoted marker
            stays reasoning); one LF before the marker and all white space after it are framing.
    Source: reference contract section 4.
    """

    __slots__ = ("_close", "_held", "_is_open", "_is_stripping")

    def __init__(self, markers: ReasoningMarkers) -> None:
        self._close = markers.close.encode()
        self._held = b""
        self._is_open = True
        self._is_stripping = True

    @property
    def in_reasoning(self) -> bool:
        """Return whether no close has been certain."""
        return self._is_open

    def fork(self) -> FreeStage:
        """Return an independent stage at the same position."""
        twin = object.__new__(FreeStage)
        twin._close, twin._held, twin._is_open = self._close, self._held, self._is_open
        twin._is_stripping = self._is_stripping
        return twin

    def feed(self, data: bytes) -> list[Segment]:
        """Return reasoning before the close and content after it."""
        if not self._is_open:
            return _segments(b"", self._strip(data))
        data = self._held + data
        cut = self._undecided_from(data)
        close = self._certain_close(data)
        if close is None:
            self._held = data[cut:]
            return _segments(data[:cut], b"")
        self._is_open, self._held = False, b""
        before = data[:close].removesuffix(b"\n")
        return _segments(before, self._strip(data[close + len(self._close) :]))

    def finish(self) -> list[Segment]:
        """Return what was held back; a marker at the very end closes."""
        held, self._held = self._held, b""
        if held.endswith(self._close):
            self._is_open = False
            return []
        return _segments(held, b"")

    def _certain_close(self, data: bytes) -> int | None:
        at = data.find(self._close)
        while at >= 0:
            after = at + len(self._close)
            if data[after : after + 1] in (b"\r", b"\n"):
                return at
            at = data.find(self._close, after)
        return None

    def _undecided_from(self, data: bytes) -> int:
        if data.endswith(self._close):
            start = len(data) - len(self._close)
        else:
            start = len(data) - overlap(data, self._close)
        return start - 1 if data[:start].endswith(b"\n") else start

    def _strip(self, data: bytes) -> bytes:
        if self._is_stripping:
            data = data.lstrip(_WHITE_SPACE)
            self._is_stripping = not data
        return data


def _segments(reasoning: bytes, content: bytes) -> list[Segment]:
    found = (Segment(Channel.REASONING, reasoning), Segment(Channel.CONTENT, content))
    return [segment for segment in found if segment.data]
