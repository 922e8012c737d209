"""The one way from the worker to a consumer; the worker never waits here.

Events queue up to the request's own output limit, so a consumer that blocks costs memory that
is bounded by its answer and nothing else.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from ninfer.contract import GenerationResult, NInferError
from ninfer.runtime.events import GenerationEnd, StreamEvent
from ninfer.runtime.outstanding import Slot
from ninfer.runtime.prepared import Cancellation

Listener = Callable[[], None]


class Outlet:
    """Event queue, terminal state and cancellation of one request."""

    def __init__(self, slot: Slot, cancellation: Cancellation, wake: Callable[[], None]) -> None:
        self._slot = slot
        self._cancellation = cancellation
        self._wake = wake
        self._is_unwanted = False
        cancellation.watch(wake)
        self._events: deque[StreamEvent] = deque()
        # Re-entrant: a handle that dies in a reference cycle is released by the garbage collector,
        # which may run on a thread that holds this very lock.
        self._ready = threading.Condition(threading.RLock())
        self._listener: Listener | None = None
        self._readers: tuple[Listener, ...] = ()
        self._result: GenerationResult | None = None
        self._error: NInferError | None = None
        self._abandoned = False

    # The worker's side.

    @property
    def is_cancelled(self) -> bool:
        """Return whether the consumer wants no more."""
        return self._is_unwanted or self._cancellation.is_cancelled

    def publish(self, event: StreamEvent) -> None:
        """Append an event; dropped when nobody can read it any more, or after the end."""
        with self._ready:
            if self._abandoned or self.is_settled:
                return
            self._events.append(event)
            self._ready.notify_all()
        self._notify()

    def finish(self, result: GenerationResult) -> None:
        """End with a result; the first end counts."""
        with self._ready:
            if self.is_settled:
                return
            self._result = result
            if not self._abandoned:
                self._events.append(GenerationEnd(result))
            # Also with the handle closed: another thread may be waiting for the result.
            self._ready.notify_all()
        self._settle()

    def fail(self, error: NInferError) -> None:
        """End with an error; the first end counts."""
        with self._ready:
            if self.is_settled:
                return
            self._error = error
            self._ready.notify_all()
        self._settle()

    def _settle(self) -> None:
        self._notify()
        self._cancellation.forget(self._wake)
        self._slot.worker_done()

    def _notify(self) -> None:
        for listener in (self._listener, *self._readers):
            if listener is None:
                continue
            try:
                listener()
            except BaseException:
                # A consumer that died, such as a closed event loop or a cancelled task, is no
                # concern of other requests, whatever it raises.
                self._forget(listener)

    def _forget(self, listener: Listener) -> None:
        with self._ready:
            if listener is self._listener:
                self._listener = None
            self._readers = tuple(reader for reader in self._readers if reader is not listener)

    # The consumer's side.

    @property
    def is_settled(self) -> bool:
        """Return whether a result or an error is there."""
        return self._result is not None or self._error is not None

    @property
    def is_over(self) -> bool:
        """Return whether no event will come any more: the end was read, or the handle let go."""
        return self._abandoned or (self._result is not None and not self._events)

    def cancel(self) -> None:
        """Ask the worker to stop at its next boundary.

        Effects: this request only; a ``Cancellation`` belongs to its caller, who may have given it
                 to others too.
        """
        self._is_unwanted = True
        self._wake()

    def release(self) -> None:
        """Let go for good: what was not read is dropped, and a live request is cancelled.

        Effects: whoever still waits for an event, or listens, is told.
        """
        with self._ready:
            if self._abandoned:
                return
            self._abandoned = True
            self._events.clear()
            settled = self.is_settled
            self._ready.notify_all()
        self._notify()
        self._listener, self._readers = None, ()
        self._slot.consumer_released()
        if not settled:
            self.cancel()

    def listen(self, listener: Listener | None) -> None:
        """Call ``listener`` after every new event, on the worker's thread; it must not block.

        Effects: it is called once more, on the releasing thread, when the handle is let go.
        """
        with self._ready:
            self._listener = None if self._abandoned else listener

    def add_reader(self, reader: Listener) -> None:
        """Call ``reader`` as a listener is called, beside whoever else listens or reads."""
        with self._ready:
            if not self._abandoned:
                self._readers = (*self._readers, reader)

    def remove_reader(self, reader: Listener) -> None:
        """Take back ``add_reader``."""
        self._forget(reader)

    def take(self) -> list[StreamEvent]:
        """Return the events that arrived since the last call, without waiting.

        Raises: NInferError — the request failed and every event was read.
        """
        with self._ready:
            if not self._events:
                self._raise_failure()
                return []
            events = list(self._events)
            self._events.clear()
            return events

    def next(self, timeout: float | None = None) -> StreamEvent | None:
        """Return the next event, or None when the timeout passed first or none will come any more.

        Raises: NInferError — the request failed and every event was read.
        """
        limit = None if timeout is None else time.monotonic() + timeout
        with self._ready:
            while not self._events:
                self._raise_failure()
                if self.is_over:
                    return None
                left = None if limit is None else limit - time.monotonic()
                if left is not None and left <= 0:
                    return None
                self._ready.wait(left)
            return self._events.popleft()

    def result(self, timeout: float | None = None) -> GenerationResult:
        """Wait for the end and return the result.

        Raises: NInferError — the request failed. TimeoutError — the timeout passed first.
        """
        with self._ready:
            if not self._ready.wait_for(lambda: self.is_settled, timeout):
                raise TimeoutError("the request is still running")
            if self._result is None:
                self._raise_failure()
            assert self._result is not None
            return self._result

    def _raise_failure(self) -> None:
        if self._error is not None:
            raise self._error
