"""How a server comes by its engine; the command line and tests bring their own way."""

from __future__ import annotations

from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ninfer.contract import EngineOptions

if TYPE_CHECKING:
    from ninfer.runtime import Engine, RequestLog


class OpenEngine(Protocol):
    """Opens an engine for the length of a ``with`` block."""

    def __call__(
        self,
        model: Path | None,
        options: EngineOptions,
        *,
        device: str | None = None,
        drafter_path: Path | None = None,
        chat_template: str | None = None,
        warm_up: bool = True,
        log: RequestLog | None = None,
    ) -> AbstractContextManager[Engine]:
        """Load a model, the embedded one without a path.

        Raises: ModelError — the model cannot be found, read or served; ValueError — an option.
        """
        ...


def open_quietly(
    model: Path | None,
    options: EngineOptions,
    *,
    device: str | None = None,
    drafter_path: Path | None = None,
    chat_template: str | None = None,
    warm_up: bool = True,
    log: RequestLog | None = None,
) -> AbstractContextManager[Engine]:
    """Implements OpenEngine without showing progress."""
    from ninfer.runtime import open_engine

    engine = open_engine(
        model,
        options,
        device=device,
        drafter_path=drafter_path,
        chat_template=chat_template,
        warm_up=warm_up,
        log=log,
    )
    return closing(engine)
