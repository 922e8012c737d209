"""The flags that say which model runs and where; ``run`` and ``bench`` share them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ninfer.contract import MOST_THREADS

Model = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="A GGUF file or a Hugging Face folder; default: the embedded model.",
        show_default=False,
    ),
]
Device = Annotated[
    str | None,
    typer.Option(help="Torch device; default: CUDA where there is one.", show_default=False),
]
PrefillChunk = Annotated[int, typer.Option(min=1, help="Prompt tokens at once.")]
Threads = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MOST_THREADS,
        help="CPU threads; default: as torch chooses.",
        show_default=False,
    ),
]
