"""What a path to a model leads to, before anything of it is read."""

from __future__ import annotations

import stat
from pathlib import Path

from ninfer.contract import ModelError

_MAGIC = b"GGUF"


def require_model(path: Path) -> None:
    """Check that a path leads to a folder, or to a file that begins as a GGUF file does.

    Large files of another kind, and devices and pipes that never end, are not read for it.
    Raises: ModelError — it leads to nothing, to anything else, or cannot be followed or read.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return
        if not stat.S_ISREG(mode):
            raise ModelError(f"{path}: is neither a folder nor a file")
        with path.open("rb") as file:
            begin = file.read(len(_MAGIC))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ModelError(f"{path}: does not exist") from error
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ModelError(f"{path}: cannot be read: {error}") from error
    if begin != _MAGIC:
        raise ModelError(f"{path}: not a readable GGUF file: it begins with {begin!r}")


def is_folder(path: Path) -> bool:
    """Return whether a path leads to a folder; one that cannot be followed does not."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False
