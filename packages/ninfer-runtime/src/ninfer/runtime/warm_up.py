"""The warm-up of an engine: beside its requests, on a thread of its own, until it is stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from ninfer.contract import WarmUpReport


class WarmUpWork(Protocol):
    """Prepares what first requests share, such as ``Frontend.warm_up``."""

    def __call__(self, *, is_wanted: Callable[[], bool]) -> WarmUpReport:
        """Work until done or no longer wanted, and say what was done."""
        ...


class WarmUp:
    """Runs a warm-up without making anybody wait for it.

    Effects: the work starts with the object. ``cancel``, ``stop`` and the end of the main thread
             end it after the piece at hand.
    """

    def __init__(self, work: WarmUpWork) -> None:
        self._work = work
        self._stopped = threading.Event()
        self._report: WarmUpReport | None = None
        # Not a daemon: at the interpreter's end it would be cut inside of native code.
        self._thread = threading.Thread(target=self._run, name="ninfer-warm-up")
        self._thread.start()

    @property
    def report(self) -> WarmUpReport | None:
        """Return what was done; None while it is being done, or after it failed."""
        return self._report

    @property
    def is_running(self) -> bool:
        """Return whether the work goes on."""
        return self._thread.is_alive()

    def cancel(self) -> None:
        """Ask the work to end."""
        self._stopped.set()

    def stop(self) -> None:
        """End the work; returns once the thread is gone."""
        self.cancel()
        self._thread.join()

    def _run(self) -> None:
        self._report = self._work(is_wanted=self._is_wanted)

    def _is_wanted(self) -> bool:
        return not self._stopped.is_set() and threading.main_thread().is_alive()
