"""What a caller sees of a long load."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple


class LoadStage(Enum):
    """What a load is doing; the first four happen on the first start with a GGUF file only."""

    IDENTIFY = "identify"
    PARSE = "parse"
    TOKENIZER = "tokenizer"
    CONVERT = "convert"
    WEIGHTS = "weights"


class LoadProgress(NamedTuple):
    """One report; ``done`` of ``total`` tensors or steps of a stage."""

    stage: LoadStage
    done: int
    total: int


Progress = Callable[[LoadProgress], None]


def report(progress: Progress | None, stage: LoadStage, done: int, total: int) -> None:
    """Tell the caller, if there is one."""
    if progress is not None:
        progress(LoadProgress(stage, done, total))
