"""How many requests may be alive at once, and when one stops counting.

A slot is given back once, after both the worker has a terminal result and the consumer let go.
"""

from __future__ import annotations

import threading

from ninfer.contract import Overloaded


class Outstanding:
    """Counts live requests: preparing, waiting, resident, paused, and finished but unread."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken = 0
        # Re-entrant, like every lock that the release of a handle takes; see Outlet.
        self._lock = threading.RLock()

    @property
    def taken(self) -> int:
        """Return the number of slots in use."""
        return self._taken

    def take(self) -> Slot:
        """Reserve a slot.

        Raises: Overloaded — every slot is in use.
        """
        with self._lock:
            if self._taken >= self._limit:
                raise Overloaded(f"all {self._limit} request slots are taken")
            self._taken += 1
        return Slot(self)

    def _give_back(self) -> None:
        with self._lock:
            self._taken -= 1


class Slot:
    """One reservation; either party may let go first."""

    __slots__ = ("_lock", "_outstanding", "_parties")

    def __init__(self, outstanding: Outstanding) -> None:
        self._outstanding = outstanding
        self._parties = {"worker", "consumer"}
        # Re-entrant, like every lock that the release of a handle takes; see Outlet.
        self._lock = threading.RLock()

    def worker_done(self) -> None:
        """Say that the request has its terminal result."""
        self._let_go("worker")

    def consumer_released(self) -> None:
        """Say that nobody will read the request any more."""
        self._let_go("consumer")

    def give_back(self) -> None:
        """Return the slot of a request that never reached the worker."""
        self._let_go("worker")
        self._let_go("consumer")

    def _let_go(self, party: str) -> None:
        with self._lock:
            if party not in self._parties:
                return
            self._parties.remove(party)
            last = not self._parties
        if last:
            self._outstanding._give_back()
