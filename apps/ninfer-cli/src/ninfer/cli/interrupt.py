"""Ctrl-C while an answer streams: cancel the request, keep everything already printed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from types import FrameType


class Interruption:
    """Whether the user has asked to stop."""

    def __init__(self) -> None:
        self.requested = False


@contextmanager
def cancel_on_interrupt(cancel: Callable[[], None]) -> Iterator[Interruption]:
    """Turn the first Ctrl-C into a call of ``cancel``; the second interrupts at once.

    The signal handler itself takes no lock of the engine: the interrupted thread may hold it, so
    another thread makes the call.
    """
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    wishes: SimpleQueue[bool] = SimpleQueue()

    def on_signal(signum: int, frame: FrameType | None) -> None:
        if interruption.requested:
            raise KeyboardInterrupt
        interruption.requested = True
        wishes.put(True)

    def watch() -> None:
        if wishes.get():
            cancel()

    watcher = threading.Thread(target=watch, name="ninfer-interrupt", daemon=True)
    previous = signal.signal(signal.SIGINT, on_signal)
    watcher.start()
    try:
        yield interruption
    finally:
        signal.signal(signal.SIGINT, previous)
        wishes.put(False)
        watcher.join()
