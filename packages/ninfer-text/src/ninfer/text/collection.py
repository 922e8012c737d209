"""Python's cycle collector, held back while a language is built.

A build makes tens of thousands of small objects and frees them by count; meanwhile the collector
would walk everything that the process holds, vocabularies above all, several times.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_holders = 0
_was_enabled = False


@contextmanager
def collection_held() -> Iterator[None]:
    """Hold the collector back until the last of several concurrent holders is done.

    Effects: process-wide; a collector that was off before stays off.
    """
    global _holders, _was_enabled
    with _lock:
        if _holders == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if _holders == 0 and _was_enabled:
                gc.enable()
