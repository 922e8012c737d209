"""The flags that say how drafts are made."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ninfer.cli.failure import InputError
from ninfer.contract import MOST_DRAFTS, SpeculativeBackend

_PANEL = "Speculation"

Spec = Annotated[
    SpeculativeBackend,
    typer.Option(help="Which drafter proposes tokens.", rich_help_panel=_PANEL),
]
DraftTokens = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MOST_DRAFTS,
        help="Drafts per round; default: 3.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
DraftModel = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="The drafter's folder; default: the model's own, or the one shipped for it.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]


def draft_count(backend: SpeculativeBackend, tokens: int | None, folder: Path | None) -> int:
    """Return the drafts per round that the flags ask for.

    Raises: InputError — a drafter is described and none is asked for.
    """
    if backend is SpeculativeBackend.NONE:
        for flag, value in (("--draft-tokens", tokens), ("--draft-model", folder)):
            if value is not None:
                raise InputError(flag, "needs --spec mtp, dflash or dflash2", "conflicting_options")
    return backend.default_draft_tokens if tokens is None else tokens
