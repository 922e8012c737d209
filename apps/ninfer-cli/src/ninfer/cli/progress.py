"""The progress bar of a model load."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

if TYPE_CHECKING:
    from ninfer.runtime.loading.progress import LoadProgress, LoadStage


class LoadBar:
    """One transient line per load stage on stderr; it leaves nothing behind."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            console=Console(stderr=True),
            transient=True,
            # stdout belongs to the answer alone.
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._tasks: dict[LoadStage, TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def show(self, report: LoadProgress) -> None:
        """Draw one report of the loader."""
        if report.stage not in self._tasks:
            self._tasks[report.stage] = self._progress.add_task(report.stage.value, total=None)
        self._progress.update(self._tasks[report.stage], completed=report.done, total=report.total)
