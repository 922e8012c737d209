"""A caller's hold on one submitted request."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Iterator
from types import TracebackType

from ninfer.contract import GenerationResult, PromptReport, SamplingParameters
from ninfer.runtime.events import StreamEvent
from ninfer.runtime.outlet import Listener, Outlet


class GenerationHandle:
    """One submitted request: wait for it, stream it, cancel it, or let it go.

    Dropping a handle whose request still runs cancels the request.
    """

    def __init__(
        self, request_id: int, prompt: PromptReport, sampling: SamplingParameters, outlet: Outlet
    ) -> None:
        self.request_id = request_id
        self.prompt = prompt
        self.resolved_sampling = sampling
        self._outlet = outlet
        self._release = weakref.finalize(self, outlet.release)
        self._release.atexit = False

    @property
    def is_settled(self) -> bool:
        """Return whether the request has ended, with a result or an error."""
        return self._outlet.is_settled

    def wait(self, timeout: float | None = None) -> GenerationResult:
        """Return the result once the request ended; may be called again.

        Raises: NInferError — the request failed. TimeoutError — the timeout (seconds) passed first.
        """
        try:
            result = self._outlet.result(timeout)
        except TimeoutError:
            raise
        except BaseException:
            self.close()
            raise
        self.close()
        return result

    def cancel(self) -> None:
        """Ask for the end at the worker's next boundary; committed output is kept."""
        self._outlet.cancel()

    def close(self) -> None:
        """Let go: unread events are dropped, and a request that still runs is cancelled."""
        self._release()

    def listen(self, listener: Listener | None) -> None:
        """Call ``listener`` after every new event, on the worker's thread; it must not block.

        Effects: it is called once more, on the closing thread, when the handle is closed.
        """
        self._outlet.listen(listener)

    def take(self) -> list[StreamEvent]:
        """Return the events that arrived since the last call, without waiting.

        Raises: NInferError — the request failed and every event was read.
        """
        return self._outlet.take()

    def next(self, timeout: float | None = None) -> StreamEvent | None:
        """Return the next event; None when the timeout (seconds) passed first or none will come.

        None comes once the end was read or the handle was closed.
        Raises: NInferError — the request failed and every event was read.
        """
        return self._outlet.next(timeout)

    def __iter__(self) -> Iterator[StreamEvent]:
        """Yield the unread events up to and including the end; nothing after it or ``close``.

        Raises: NInferError — the request failed.
        """
        with self:
            while (event := self._outlet.next()) is not None:
                yield event

    async def __aiter__(self) -> AsyncIterator[StreamEvent]:
        """Yield the unread events up to and including the end, without blocking the event loop.

        Raises: NInferError — the request failed.
        """
        loop = asyncio.get_running_loop()
        arrived = asyncio.Event()

        def notify() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(arrived.set)

        self._outlet.add_reader(notify)
        try:
            with self:
                while True:
                    arrived.clear()
                    events = self.take()
                    for event in events:
                        yield event
                    if not events:
                        if self._outlet.is_over:
                            return
                        await arrived.wait()
        finally:
            self._outlet.remove_reader(notify)

    def __enter__(self) -> GenerationHandle:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
