"""``ninfer models``: the embedded model, the served families, the cache of conversions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from ninfer.cli.answer import print_json, print_line
from ninfer.cli.services import Invocation
from ninfer.contract import ModelError


class KnownModels(NamedTuple):
    """What this installation can serve without being told a path, and what it keeps.

    Units: ``converted`` maps folders to bytes.
    """

    embedded: Path | None
    architectures: tuple[str, ...]
    cache: Path
    converted: dict[Path, int]


def models(
    context: typer.Context,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say which models are embedded or served, and where converted weights are kept."""
    invocation: Invocation = context.obj
    invocation.as_json = json
    known = known_models()
    if json:
        print_json(
            {
                "embedded": str(known.embedded) if known.embedded else None,
                "architectures": list(known.architectures),
                "cache": str(known.cache),
                "converted": {str(path): size for path, size in known.converted.items()},
            }
        )
        return
    print_line(f"embedded: {known.embedded or 'not installed'}")
    print_line(f"served: {', '.join(known.architectures)}")
    print_line(f"cache: {known.cache}")
    for folder, size in known.converted.items():
        print_line(f"converted: {folder.name}, {size / 1e6:.1f} MB")


def known_models() -> KnownModels:
    """Return what this installation serves and keeps."""
    from ninfer.runtime.loading.cache import cache_folder, is_complete
    from ninfer.runtime.loading.embedded import embedded_model_path
    from ninfer.runtime.models.registry import SERVED

    try:
        embedded = embedded_model_path()
    except ModelError:
        embedded = None
    folders = [folder for folder in (cache_folder() / "models").glob("*") if is_complete(folder)]
    sizes = {f: sum(file.stat().st_size for file in f.iterdir()) for f in sorted(folders)}
    return KnownModels(embedded, SERVED, cache_folder(), sizes)
