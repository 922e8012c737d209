"""The engine: prepare and submit on the caller's thread, everything else on one worker.

Knows no output format: sessions decide what tokens mean. Source: reference contract section 1.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType

from ninfer.contract import (
    DeviceFailure,
    EngineOptions,
    GenerationResult,
    MemoryReport,
    NInferError,
    Program,
    PromptInput,
    RequestOptions,
    WarmUpReport,
)
from ninfer.runtime.counters import Counters, EngineStats
from ninfer.runtime.frontend import Frontend
from ninfer.runtime.handle import GenerationHandle
from ninfer.runtime.inbox import EngineState, Inbox
from ninfer.runtime.masks import LookaheadBatch, lookahead_rows
from ninfer.runtime.metrics import Metric, engine_metrics
from ninfer.runtime.outstanding import Outstanding
from ninfer.runtime.prepared import Cancellation, Prepared
from ninfer.runtime.pulse import Pulse
from ninfer.runtime.request_log import RequestLog, SilentLog
from ninfer.runtime.settlement import Settlement
from ninfer.runtime.submission import Submitter
from ninfer.runtime.warm_up import WarmUp, WarmUpWork
from ninfer.runtime.worker import Worker


class Engine:
    """Serves requests over one program.

    ``threaded`` False leaves the worker to ``run_cycle``, for tests and tools that step it.
    ``warm_up`` runs on a thread of its own until it is done or the engine is closed; no request
    waits for it.
    """

    def __init__(
        self,
        program: Program,
        frontend: Frontend,
        options: EngineOptions | None = None,
        *,
        lookahead: LookaheadBatch = lookahead_rows,
        log: RequestLog | None = None,
        warm_up: WarmUpWork | None = None,
        now: Callable[[], float] = time.monotonic,
        threaded: bool = True,
    ) -> None:
        self.options = options or EngineOptions()
        self.frontend = frontend
        self.shape = program.shape
        self._memory = replace(
            program.memory,
            host_snapshot_bytes=self.options.host_snapshot_bytes,
            grammar_cache_bytes=self.options.grammar_cache_bytes,
        )
        self._now = now
        self._log = log or SilentLog()
        self._counters = Counters()
        self._inbox = Inbox()
        self._submitter = Submitter(frontend, program.shape, self._inbox, now)
        self._outstanding = Outstanding(
            self.options.max_concurrency + self.options.max_pending_requests
        )
        settlement = Settlement(
            self._counters, self._log, now, self.options.speculative, program.shape.draft_limit
        )
        self._worker = Worker(
            program,
            self.options,
            self._inbox,
            settlement,
            self._counters,
            Pulse(self._log, now()),
            lookahead,
            now,
        )
        self._thread: threading.Thread | None = None
        if threaded:
            self._thread = threading.Thread(
                target=self._worker.run, name="ninfer-worker", daemon=True
            )
            self._thread.start()
            weakref.finalize(self, self._inbox.move_to, EngineState.STOPPING)
        self._warm_up = None if warm_up is None else WarmUp(warm_up)
        if self._warm_up is not None:
            weakref.finalize(self, self._warm_up.cancel)

    def deadline(self) -> float:
        """Return the pending deadline of a request that enters now, on the engine's clock."""
        return self._now() + self.options.pending_timeout_ms / 1000.0

    def prepare(self, prompt: PromptInput, *, cancellation: Cancellation | None = None) -> Prepared:
        """Render a prompt on the caller's thread.

        Raises: RequestError — the prompt is refused; RequestCancelled; EngineUnavailable.
        """
        started = self._now()
        try:
            self._inbox.require_open()
            rendered = self.frontend.prepare(prompt)
            if cancellation is not None:
                cancellation.require_wanted()
        except NInferError as error:
            self._reject(error)
            raise
        return Prepared(rendered, started, self._now() - started)

    def submit(
        self,
        prepared: Prepared,
        options: RequestOptions | None = None,
        *,
        deadline: float | None = None,
        cancellation: Cancellation | None = None,
    ) -> GenerationHandle:
        """Put a request into the queue and return its handle.

        Effects: compiles what the request is held to on the caller's thread, with a request slot
                 reserved and no engine lock held; the slot is given back when anything is refused.
        Raises:  Overloaded, EngineUnavailable, RequestError, QueueTimeout — the deadline passed
                 meanwhile; RequestCancelled.
        """
        try:
            self._inbox.require_open()
            slot = self._outstanding.take()
            try:
                return self._submitter.submit(
                    prepared,
                    options or RequestOptions(),
                    self.deadline() if deadline is None else deadline,
                    cancellation or Cancellation(),
                    slot,
                )
            except BaseException:
                slot.give_back()
                raise
        except NInferError as error:
            self._reject(error)
            raise

    def start(
        self,
        prompt: PromptInput,
        options: RequestOptions | None = None,
        *,
        cancellation: Cancellation | None = None,
    ) -> GenerationHandle:
        """Prepare and submit under one deadline.

        Raises: as ``prepare`` and ``submit``.
        """
        deadline = self.deadline()
        prepared = self.prepare(prompt, cancellation=cancellation)
        return self.submit(prepared, options, deadline=deadline, cancellation=cancellation)

    def generate(
        self, prompt: PromptInput, options: RequestOptions | None = None
    ) -> GenerationResult:
        """Prepare, submit and wait.

        Raises: as ``start``; whatever ended the request.
        """
        return self.start(prompt, options).wait()

    def count_tokens(self, prompt: PromptInput) -> int:
        """Return the length of a rendered prompt; compiles nothing.

        Raises: RequestError — the prompt is refused.
        """
        return len(self.frontend.prepare(prompt).token_ids)

    @property
    def is_available(self) -> bool:
        """Return whether requests are taken."""
        return self._inbox.state is EngineState.OPEN

    @property
    def state(self) -> EngineState:
        """Return what the engine is doing."""
        return self._inbox.state

    def stats(self) -> EngineStats:
        """Return a snapshot of the counters."""
        stats = self._counters.snapshot()
        stats.requests_outstanding = self._outstanding.taken
        return stats

    def memory_summary(self) -> MemoryReport:
        """Return what the engine holds since its start, and what it may take of host memory."""
        return self._memory

    @property
    def is_warming(self) -> bool:
        """Return whether the warm-up is still at work."""
        return self._warm_up is not None and self._warm_up.is_running

    @property
    def warm_up_report(self) -> WarmUpReport | None:
        """Return what the warm-up prepared; None while it runs, or where there was none."""
        return None if self._warm_up is None else self._warm_up.report

    def metrics(self, model: str = "") -> list[Metric]:
        """Return the engine's metric families; ``model`` is the public name of what it serves."""
        return engine_metrics(
            self.stats(),
            self.options,
            self.shape,
            model=model,
            is_ready=self.is_available,
            warm_up=self.warm_up_report,
        )

    def run_cycle(self) -> bool:
        """Run one worker cycle on the calling thread, without waiting; False once closed.

        Raises: RuntimeError — the engine has its own thread.
        """
        if self._thread is not None:
            raise RuntimeError("the worker thread runs the cycles of this engine")
        return self._worker.cycle(block=False)

    @property
    def is_idle(self) -> bool:
        """Return whether no request is waiting, resident or paused."""
        return self._worker.is_idle

    def close(self, *, drain_seconds: float = 0.0, stop_seconds: float = 30.0) -> None:
        """Take no more requests, let those there end for a while, then fail the rest.

        Effects: the worker thread is gone when this returns.
        Raises:  DeviceFailure — a unit of work did not come back within ``stop_seconds``; every
                 request was failed, and the thread ends once the unit does.
        """
        if self._warm_up is not None:
            self._warm_up.stop()
        try:
            if self._thread is None:
                self._inbox.move_to(EngineState.STOPPING)
                self._worker.cycle(block=False)
            else:
                self._stop(self._thread, drain_seconds, stop_seconds)
        finally:
            self._log.close()

    def _stop(self, thread: threading.Thread, drain_seconds: float, stop_seconds: float) -> None:
        if drain_seconds > 0:
            self._inbox.move_to(EngineState.DRAINING)
            thread.join(drain_seconds)
        self._inbox.move_to(EngineState.STOPPING)
        thread.join(stop_seconds)
        if thread.is_alive():
            self._worker.abandon()
            raise DeviceFailure(f"a unit of work is still running after {stop_seconds:g} seconds")

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _reject(self, error: NInferError) -> None:
        self._counters.rejected()
        self._log.rejected(error)
