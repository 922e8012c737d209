"""Requests that wait for their first lane, in submit order, with a bounded bypass."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ninfer.runtime.request import EngineRequest

BYPASS_LIMIT = 8
"""Younger requests that may go ahead of one that does not fit; then everyone waits for it."""


class WaitingQueue:
    """First in, first out; while the head does not fit, a few that fit may pass it."""

    def __init__(self) -> None:
        self._waiting: list[EngineRequest] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[EngineRequest]:
        return iter(self._waiting)

    def append(self, request: EngineRequest) -> None:
        """Add the youngest request."""
        self._waiting.append(request)

    def take_unwanted(self, now: float) -> tuple[list[EngineRequest], list[EngineRequest]]:
        """Remove and return the cancelled and the expired requests."""
        cancelled = [r for r in self._waiting if r.outlet.is_cancelled]
        expired = [r for r in self._waiting if r.deadline <= now and not r.outlet.is_cancelled]
        if cancelled or expired:
            gone = {id(r) for r in cancelled} | {id(r) for r in expired}
            self._waiting = [r for r in self._waiting if id(r) not in gone]
        return cancelled, expired

    def take_fitting(self, fits: Callable[[EngineRequest], bool]) -> EngineRequest | None:
        """Remove and return the next request to admit, or None when none may go.

        The head goes first. A head that does not fit lets younger ones pass at most BYPASS_LIMIT
        times, so it cannot starve.
        """
        if not self._waiting:
            return None
        head = self._waiting[0]
        if fits(head):
            return self._waiting.pop(0)
        if head.bypasses >= BYPASS_LIMIT:
            return None
        for index, request in enumerate(self._waiting[1:], start=1):
            if fits(request):
                head.bypasses += 1
                return self._waiting.pop(index)
        return None

    def next_deadline(self) -> float | None:
        """Return the earliest deadline."""
        return min((r.deadline for r in self._waiting), default=None)

    def drain(self) -> list[EngineRequest]:
        """Remove and return everything."""
        everything, self._waiting = self._waiting, []
        return everything
