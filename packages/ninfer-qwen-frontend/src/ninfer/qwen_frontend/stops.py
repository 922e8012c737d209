"""Stop strings in one channel's text."""

from __future__ import annotations

from typing import NamedTuple

from ninfer.contract import StopString
from ninfer.qwen_frontend.overlap import overlap


class DeclaredStop(NamedTuple):
    """A stop string and its place in the caller's list."""

    order: int
    stop: StopString


class ScannedText(NamedTuple):
    """Text that is final, and the stop that ended it."""

    text: str
    match: StopString | None = None


class StopScanner:
    """Finds the first stop string and holds back what may become one.

    Math:    of the matches completed by one feed, the earliest start wins, then the one declared
             first; a feed per token makes that the fewest committed tokens.
    Effects: the longest suffix that is a proper prefix of a stop string is held back; after a match
             nothing more is published.
    Source:  reference contract section 4.
    """

    __slots__ = ("_held", "_stops")

    def __init__(self, stops: tuple[DeclaredStop, ...], held: str = "") -> None:
        self._stops = stops
        self._held = held

    def fork(self) -> StopScanner:
        """Return an independent scanner at the same position."""
        return StopScanner(self._stops, self._held)

    def feed(self, text: str) -> ScannedText:
        """Return the text that became final, cut at the first stop string."""
        if not self._stops or not text:
            return ScannedText(text)
        text = self._held + text
        first = self._first_match(text)
        if first is not None:
            self._held = ""
            start, stop = first
            end = start + len(stop.text) if stop.include_in_output else start
            return ScannedText(text[:end], stop)
        held = max(overlap(text, declared.stop.text) for declared in self._stops)
        cut = len(text) - held
        self._held = text[cut:]
        return ScannedText(text[:cut])

    def finish(self) -> str:
        """Return the text held back; the channel ends without a stop string."""
        held, self._held = self._held, ""
        return held

    def _first_match(self, text: str) -> tuple[int, StopString] | None:
        found = [
            (start, declared.order, declared.stop)
            for declared in self._stops
            if (start := text.find(declared.stop.text)) >= 0
        ]
        if not found:
            return None
        start, _, stop = min(found, key=lambda item: item[:2])
        return start, stop
