"""The folder of converted models: found by content, written once, never half-written.

Layout: ``<cache>/models/<version>-<sha256 of the file>/`` holds a conversion and ``complete.json``
with the size of every file; ``<cache>/identities/`` remembers the digest of a file that has not
changed since, so that a large file is read once.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from safetensors import SafetensorError

from ninfer.contract import ModelError

CONVERSION_VERSION = 1
"""Raised whenever the same file would convert to other bytes."""

_MANIFEST = "complete.json"
_ABANDONED_SECONDS = 24 * 3600


def cache_folder() -> Path:
    """Return where conversions are kept: NINFER_CACHE_DIR, or ninfer in the user's cache folder."""
    named = os.environ.get("NINFER_CACHE_DIR")
    if named:
        return Path(named)
    user = os.environ.get("XDG_CACHE_HOME")
    return (Path(user) if user else Path.home() / ".cache") / "ninfer"


def converted(path: Path, convert: Callable[[Path], None]) -> Path:
    """Return the complete conversion of a file; ``convert`` fills an empty folder if there is none.

    Effects: two processes may convert at once; one result is kept, both return it. A conversion
             with missing or truncated files is replaced.
             A complete one is found in a folder that cannot be written, too.
    Raises:  ModelError — the file cannot be read, the cache folder cannot be written; whatever
             ``convert`` raises.
    """
    root = cache_folder()
    try:
        digest = content_digest(path, root)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from error
    target = root / "models" / f"{CONVERSION_VERSION}-{digest}"
    if is_complete(target):
        return target
    try:
        (root / "models").mkdir(parents=True, exist_ok=True)
        _remove_abandoned(root / "models")
        with tempfile.TemporaryDirectory(prefix="partial-", dir=root / "models") as partial:
            fresh = Path(partial) / "conversion"
            fresh.mkdir()
            convert(fresh)
            sizes = {file.name: file.stat().st_size for file in fresh.iterdir()}
            (fresh / _MANIFEST).write_text(json.dumps(sizes))
            _publish(fresh, target, Path(partial) / "replaced")
    except (OSError, SafetensorError) as error:
        fact = error.strerror if isinstance(error, OSError) else error
        raise ModelError(
            f"{root}: the cache folder cannot be used ({fact}); NINFER_CACHE_DIR names another one"
        ) from error
    return target


def content_digest(path: Path, root: Path) -> str:
    """Return the SHA-256 of a file, remembered for as long as its identity stays the same.

    Effects: without a folder that can be written it is computed and not remembered.
    Raises:  OSError — the file cannot be read.
    """
    stat = path.stat()
    identity = f"{stat.st_dev:x}-{stat.st_ino:x}-{stat.st_size:x}-{stat.st_mtime_ns:x}"
    memory = root / "identities" / identity
    remembered = _remembered(memory)
    if remembered is not None:
        return remembered
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    with suppress(OSError):
        memory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=memory.parent, delete=False) as fresh:
            fresh.write(digest)
        Path(fresh.name).replace(memory)
    return digest


def _remembered(memory: Path) -> str | None:
    """Return the digest that a file holds, or None where it holds anything else."""
    try:
        text = memory.read_text(encoding="ascii")
    except (OSError, ValueError):
        return None
    return text if re.fullmatch("[0-9a-f]{64}", text) else None


def is_complete(folder: Path) -> bool:
    """Return whether every file of a conversion is there in its full size."""
    try:
        sizes = json.loads((folder / _MANIFEST).read_text())
        return len(sizes) > 0 and all(
            (folder / name).stat().st_size == size for name, size in sizes.items()
        )
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return False


def _remove_abandoned(models: Path) -> None:
    """Remove what conversions left that were killed; nothing has been written there for a day."""
    oldest = time.time() - _ABANDONED_SECONDS
    for partial in models.glob("partial-*"):
        with suppress(OSError):
            if max(place.stat().st_mtime for place in (partial, *partial.rglob("*"))) < oldest:
                shutil.rmtree(partial, ignore_errors=True)


def _publish(fresh: Path, target: Path, replaced: Path) -> None:
    """Move a finished conversion into place; a complete one that came first stays."""
    if target.exists() and not is_complete(target):
        target.rename(replaced)
    try:
        fresh.rename(target)
    except OSError:
        if not is_complete(target):
            raise
    shutil.rmtree(replaced, ignore_errors=True)
