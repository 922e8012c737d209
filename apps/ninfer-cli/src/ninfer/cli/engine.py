"""The real engine behind the commands, with a progress bar while it loads on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ninfer.contract import EngineOptions

if TYPE_CHECKING:
    from ninfer.runtime import Engine
    from ninfer.runtime.loading.progress import Progress


@contextmanager
def open_engine(model: Path | None, options: EngineOptions) -> Iterator[Engine]:
    """Open an engine for the length of a ``with`` block.

    Raises: ModelError — the model cannot be found, read or served.
    """
    from ninfer.runtime import open_engine as open_runtime

    with load_progress() as progress:
        engine = open_runtime(model, options, progress=progress)
    try:
        yield engine
    finally:
        engine.close()


@contextmanager
def load_progress() -> Iterator[Progress | None]:
    """Show a load on stderr, if that is a terminal; only then is the bar's library imported."""
    if not sys.stderr.isatty():
        yield None
        return
    from ninfer.cli.progress import LoadBar

    with LoadBar() as bar:
        yield bar.show
