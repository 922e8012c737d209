"""The real engine behind the commands, with a progress bar while it loads on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ninfer.cli.failure import InputError, option_error
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
    drafter_path: Path | None = None,
    chat_template: str | None = None,
    warm_up: bool = True,
    log: RequestLog | None = None,
) -> Iterator[Engine]:
    """Implements ``ninfer.gateway.opening.OpenEngine``."""
    from ninfer.runtime import open_engine as open_runtime

    with load_progress() as progress, _named_errors(device):
        engine = open_runtime(
            model,
            options,
            device=device,
            drafter_path=drafter_path,
            chat_template=chat_template,
            warm_up=warm_up,
            progress=progress,
            log=log,
        )
    with engine:
        yield engine


@contextmanager
def _named_errors(device: str | None) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise option_error(error) from error
    except RuntimeError as error:
        # What torch says of a device that it does not know or cannot reach.
        if device is None:
            raise
        raise InputError(f"--device {device}", str(error).splitlines()[0]) from error


@contextmanager
def load_progress() -> Iterator[Progress | None]:
    """Show a load on stderr if that is a terminal; only then is the bar's library imported."""
    if not sys.stderr.isatty():
        yield None
        return
    from ninfer.cli.progress import LoadBar

    with LoadBar() as bar:
        yield bar.show
