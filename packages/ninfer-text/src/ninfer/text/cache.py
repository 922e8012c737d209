"""What was compiled before: one build a key, few builds at once, a budget in bytes.

Knows keys, values with a size, and refusals. Does not know what is built.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from ninfer.contract import CacheOutcome, RequestCancelled, RequestError


class Sized(Protocol):
    """A value that knows what it holds; the answer may grow while it is used."""

    @property
    def memory_bytes(self) -> int:
        """Return roughly what the value holds now."""
        ...


Value = TypeVar("Value", bound=Sized)

ENTRY_BYTES = 1024
"""What one entry costs beside its value: key, links, a refusal's text."""


@dataclass(slots=True)
class _Flight(Generic[Value]):
    """One build in progress; ``result`` stays None where it failed without a verdict."""

    done: threading.Event = field(default_factory=threading.Event)
    result: Value | RequestError | None = None


@dataclass(slots=True)
class _Entry(Generic[Value]):
    result: Value | RequestError
    held_bytes: int = ENTRY_BYTES


class CompilationCache(Generic[Value]):
    """A thread-safe cache of builds and of refusals, least recently used out first.

    Units:   ``budget_bytes`` bounds what the cache itself keeps alive; a value in use lives on
             after its eviction. ``builders`` bounds the builds at one time; hits take no place.
    Effects: a build runs on its caller's thread with no lock held. A RequestError is remembered
             like a value; a cancellation and any other failure is not, and whoever waited for it
             builds again.
    """

    def __init__(self, budget_bytes: int, *, builders: int = 2) -> None:
        self._budget_bytes = budget_bytes
        self._builders = threading.BoundedSemaphore(builders)
        self._lock = threading.Lock()
        self._entries: OrderedDict[bytes, _Entry[Value]] = OrderedDict()
        self._flights: dict[bytes, _Flight[Value]] = {}
        self._held_bytes = 0

    @property
    def held_bytes(self) -> int:
        """Return what the retained entries held when they were last looked at."""
        with self._lock:
            return self._held_bytes

    def get(self, key: bytes, build: Callable[[], Value]) -> tuple[Value, CacheOutcome]:
        """Return the value of a key, found, built here, or built by another caller meanwhile.

        Raises: RequestError — the build refused, now or earlier; every caller gets its own object.
        """
        while True:
            with self._lock:
                if (found := self._find(key)) is not None:
                    return _opened(found), CacheOutcome.HIT
                flight = self._flights.get(key)
                if flight is None:
                    own = self._flights[key] = _Flight[Value]()
            if flight is None:
                return self._lead(key, own, build), CacheOutcome.BUILT
            flight.done.wait()
            if flight.result is not None:
                return _opened(flight.result), CacheOutcome.WAITED

    def _find(self, key: bytes) -> Value | RequestError | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        self._measure(entry)
        self._evict()
        return entry.result

    def _lead(self, key: bytes, flight: _Flight[Value], build: Callable[[], Value]) -> Value:
        try:
            with self._builders:
                value = build()
            flight.result = value
            return value
        except RequestCancelled:
            raise
        except RequestError as refusal:
            flight.result = _fresh(refusal)
            raise
        finally:
            with self._lock:
                del self._flights[key]
                if flight.result is not None:
                    self._retain(key, flight.result)
            flight.done.set()

    def _retain(self, key: bytes, result: Value | RequestError) -> None:
        entry = self._entries[key] = _Entry(result)
        self._held_bytes += entry.held_bytes
        self._measure(entry)
        self._evict()

    def _measure(self, entry: _Entry[Value]) -> None:
        if isinstance(entry.result, RequestError):
            return
        held = ENTRY_BYTES + entry.result.memory_bytes
        self._held_bytes += held - entry.held_bytes
        entry.held_bytes = held

    def _evict(self) -> None:
        while self._held_bytes > self._budget_bytes and self._entries:
            _, entry = self._entries.popitem(last=False)
            self._held_bytes -= entry.held_bytes


def _opened(result: Value | RequestError) -> Value:
    if isinstance(result, RequestError):
        raise _fresh(result)
    return result


def _fresh(error: RequestError) -> RequestError:
    # Raising one object twice would share its traceback between requests.
    copy = type(error).__new__(type(error), *error.args)
    copy.__dict__.update(error.__dict__)
    return copy
