"""What a caller holds between preparation and submission: a rendered prompt and a way out."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from ninfer.contract import RequestCancelled
from ninfer.qwen_frontend.prepared import PreparedPrompt


class Cancellation:
    """A one-way flag a caller raises from any thread; covers preparation as well as generation."""

    __slots__ = ("_flag", "_lock", "_watchers")

    def __init__(self) -> None:
        self._flag = threading.Event()
        # Re-entrant, like every lock that the release of a handle takes; see Outlet.
        self._lock = threading.RLock()
        self._watchers: list[Callable[[], None]] = []

    def cancel(self) -> None:
        """Raise the flag and tell who watches it; later calls change nothing."""
        with self._lock:
            self._flag.set()
            watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            watcher()

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call ``watcher`` when the flag is raised; it must not block."""
        with self._lock:
            if not self._flag.is_set():
                self._watchers.append(watcher)

    def forget(self, watcher: Callable[[], None]) -> None:
        """Take back one ``watch``; a flag may outlive many requests."""
        with self._lock:
            if watcher in self._watchers:
                self._watchers.remove(watcher)

    @property
    def is_cancelled(self) -> bool:
        """Return whether the flag is up."""
        return self._flag.is_set()

    def require_wanted(self) -> None:
        """Check that the request is still wanted.

        Raises: RequestCancelled.
        """
        if self._flag.is_set():
            raise RequestCancelled("the request was cancelled while it was being prepared")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A rendered prompt and what its preparation took.

    Units: ``started`` on the engine's clock; ``seconds`` of preparation.
    """

    prompt: PreparedPrompt
    started: float
    seconds: float

    @property
    def prompt_tokens(self) -> int:
        """Return the prompt's length."""
        return len(self.prompt.token_ids)
