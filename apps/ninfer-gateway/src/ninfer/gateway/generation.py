"""One request between the event loop and the engine: prepared off the loop, read without blocking.

A client that goes away cancels the task that serves it; the handle then cancels the request, also
where the request was still being prepared.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from ninfer.contract import GenerationResult, PromptInput, RequestOptions
from ninfer.gateway.trace import token_trace
from ninfer.runtime import (
    Cancellation,
    Engine,
    GenerationEnd,
    GenerationHandle,
    GenerationStart,
    StreamEvent,
)


class GenerationService:
    """Starts requests on threads of its own and hands their events to the loop."""

    def __init__(self, engine: Engine, *, preparation_threads: int, silence_seconds: float) -> None:
        self.engine = engine
        self._silence_seconds = silence_seconds
        self._threads = ThreadPoolExecutor(preparation_threads, "ninfer-prepare")

    async def start(self, prompt: PromptInput, options: RequestOptions) -> GenerationHandle:
        """Prepare and submit a request.

        Raises: RequestError, AdmissionError, EngineUnavailable.
        """
        cancellation = Cancellation()
        job = self._threads.submit(self.engine.start, prompt, options, cancellation=cancellation)
        try:
            return await asyncio.wrap_future(job)
        except asyncio.CancelledError:
            cancellation.cancel()
            job.add_done_callback(_abandon)
            raise

    async def events(self, handle: GenerationHandle) -> AsyncIterator[StreamEvent | None]:
        """Yield the events of a request, and None after every stretch of silence.

        Raises: NInferError — the request failed.
        """
        loop = asyncio.get_running_loop()
        arrived = asyncio.Event()

        def notify() -> None:
            # The loop may close while the worker publishes its last event.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(arrived.set)

        handle.listen(notify)
        while True:
            arrived.clear()
            events = handle.take()
            for event in events:
                yield event
                if isinstance(event, GenerationEnd):
                    return
            if events:
                continue
            try:
                async with asyncio.timeout(self._silence_seconds):
                    await arrived.wait()
            except TimeoutError:
                yield None

    async def count_tokens(self, prompt: PromptInput) -> int:
        """Return the length of a rendered prompt.

        Raises: RequestError — the prompt is refused.
        """
        job = self._threads.submit(self.engine.count_tokens, prompt)
        return await asyncio.wrap_future(job)

    async def trace(
        self, options: RequestOptions, result: GenerationResult
    ) -> list[dict[str, Any]] | None:
        """Return how much choice the constraint left at every token of an answer."""
        job = self._threads.submit(token_trace, self.engine, options.constraint, result)
        return await asyncio.wrap_future(job)

    def close(self) -> None:
        """Let the threads end once their requests are submitted."""
        self._threads.shutdown(wait=True)


def _abandon(job: Future[GenerationHandle]) -> None:
    if not job.cancelled() and job.exception() is None:
        job.result().close()


async def admitted(events: AsyncIterator[StreamEvent | None]) -> GenerationStart:
    """Wait until the engine has admitted the request, so that refusals keep their HTTP status.

    Raises: NInferError — the request was refused.
    """
    async for event in events:
        if isinstance(event, GenerationStart):
            return event
    raise AssertionError("a request starts or fails before its events end")


async def collected(events: AsyncIterator[StreamEvent | None]) -> GenerationResult:
    """Return the result at the end of the events.

    Raises: NInferError — the request failed.
    """
    async for event in events:
        if isinstance(event, GenerationEnd):
            return event.result
    raise AssertionError("events end with a result or an error")
