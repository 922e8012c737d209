"""Where other threads meet the worker: arrivals, a wake-up, and whether the engine takes any.

The only lock that submitters and the worker share; nothing slow happens under it.
"""

from __future__ import annotations

import threading
from enum import Enum

from ninfer.contract import EngineUnavailable
from ninfer.runtime.request import EngineRequest


class EngineState(Enum):
    """Whether requests are taken, and what happens to those already there."""

    OPEN = "open"
    DRAINING = "draining"
    STOPPING = "stopping"
    CLOSED = "closed"
    POISONED = "poisoned"


class Inbox:
    """Arrivals in submit order, guarded together with the engine's state."""

    def __init__(self) -> None:
        self._arrivals: list[EngineRequest] = []
        self._state = EngineState.OPEN
        self._reason = ""
        self._is_woken = False
        # Re-entrant, like every lock that the release of a handle takes; see Outlet.
        self._changed = threading.Condition(threading.RLock())

    @property
    def state(self) -> EngineState:
        """Return the state now."""
        return self._state

    @property
    def is_empty(self) -> bool:
        """Return whether every arrival was collected."""
        return not self._arrivals

    def require_open(self) -> None:
        """Check that requests are taken.

        Raises: EngineUnavailable.
        """
        if self._state is not EngineState.OPEN:
            raise EngineUnavailable(self._refusal())

    def put(self, request: EngineRequest) -> None:
        """Append an arrival.

        Raises: EngineUnavailable — the engine stopped meanwhile.
        """
        with self._changed:
            self.require_open()
            self._arrivals.append(request)
            self._changed.notify()

    def wake(self) -> None:
        """Make the worker look around, such as for a cancellation."""
        with self._changed:
            self._is_woken = True
            self._changed.notify()

    def move_to(self, state: EngineState, reason: str = "") -> None:
        """Enter a state; a poisoned or closed engine stays what it is, save that both may close."""
        with self._changed:
            if self._state in (EngineState.CLOSED, EngineState.POISONED):
                return
            self._state, self._reason = state, reason
            self._is_woken = True
            self._changed.notify()

    def collect(self, timeout: float | None = 0.0) -> list[EngineRequest]:
        """Return the arrivals; wait for one, a wake-up or the timeout first. None waits on."""
        with self._changed:
            if timeout is None or timeout > 0.0:
                self._changed.wait_for(lambda: self._arrivals or self._is_woken, timeout)
            self._is_woken = False
            arrivals, self._arrivals = self._arrivals, []
            return arrivals

    def _refusal(self) -> str:
        word = self._state.value
        return f"the engine is {word}: {self._reason}" if self._reason else f"the engine is {word}"
