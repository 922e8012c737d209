"""The real engine behind the commands, with a progress bar while it loads on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ninfer.contract import EngineOptions

if TYPE_CHECKING:
    from ninfer.runtime import Engine, RequestLog
    from ninfer.runtime.loading.progress import Progress


@contextmanager
def open_engine(
    model: Path | None,
    options: EngineOptions,
    *,
    device: str | None = None,
    chat_template: str | None = None,
    warm_up: bool = True,
    log: RequestLog | None = None,
) -> Iterator[Engine]:
    """Implements ``ninfer.gateway.opening.OpenEngine``."""
    from ninfer.runtime import open_engine as open_runtime

    with _load_progress() as progress:
        engine = open_runtime(
            model,
            options,
            device=device,
            chat_template=chat_template,
            warm_up=warm_up,
            progress=progress,
            log=log,
        )
    with engine:
        yield engine


@contextmanager
def _load_progress() -> Iterator[Progress | None]:
    # Only a terminal sees a bar, and only then is its library imported.
    if not sys.stderr.isatty():
        yield None
        return
    from ninfer.cli.progress import LoadBar

    with LoadBar() as bar:
        yield bar.show
