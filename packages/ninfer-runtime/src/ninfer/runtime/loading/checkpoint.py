"""A Hugging Face checkpoint folder: its JSON files and memory-mapped tensors."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, cast

from safetensors import SafetensorError, safe_open

from ninfer.contract import ModelError

if TYPE_CHECKING:
    import torch

Json = dict[str, object]


class Checkpoint:
    """The files of one folder.

    Raises: ModelError — the folder has no config.json, or weights that cannot be opened.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not folder.is_dir():
            raise ModelError(f"{folder}: not a folder and not a .gguf file")
        self.config = self.require_json("config.json")
        self._homes: dict[str, object] = {}
        single = folder / "model.safetensors"
        if self._is_there(single):
            self._add_weights(single)
            return
        index = self._weight_index(single)
        for name in sorted(set(index.values())):
            self._add_weights(folder / name, {k for k, home in index.items() if home != name})
        missing = sorted(index.keys() - self._homes.keys())
        if missing:
            raise ModelError(f"{folder / index[missing[0]]}: {missing[0]}: the tensor is missing")

    @property
    def names(self) -> frozenset[str]:
        """Return the names of all tensors."""
        return frozenset(self._homes)

    def require_json(self, name: str) -> Json:
        """Return the object of a JSON file.

        Raises: ModelError — the file is missing or holds no JSON object.
        """
        value = self.optional_json(name)
        if value is None:
            raise ModelError(f"{self.folder / name}: the file is missing")
        return value

    def optional_json(self, name: str) -> Json | None:
        """Return the object of a JSON file, or None where there is no such file.

        Raises: ModelError — the file holds no JSON object.
        """
        text = self.optional_text(name)
        if text is None:
            return None
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ModelError(f"{self.folder / name}: not JSON: {error}") from error
        if not isinstance(value, dict):
            raise ModelError(f"{self.folder / name}: not a JSON object")
        return value

    def optional_text(self, name: str) -> str | None:
        """Return the text of a file, or None where there is no such file.

        Raises: ModelError — the file is not UTF-8, cannot be read, or is no file.
        """
        path = self.folder / name
        if not self._is_there(path):
            return None
        try:
            return path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ModelError(f"{path}: not UTF-8: {error}") from error
        except OSError as error:
            raise ModelError(f"{path}: cannot be read: {error.strerror}") from error

    def fail(self, name: str, fact: str) -> ModelError:
        """Return the error of one tensor or field, for the caller to raise."""
        return ModelError(f"{self.folder}: {name}: {fact}")

    def has(self, name: str) -> bool:
        """Return whether a file of the folder has a tensor."""
        return name in self._homes

    def tensor(self, name: str) -> torch.Tensor:
        """Return a tensor backed by the mapped file.

        Raises: ModelError — no file of the folder has it, or its format is unknown.
        """
        file = self._homes.get(name)
        if file is None:
            raise self.fail(name, "the tensor is missing")
        try:
            return cast("torch.Tensor", file.get_tensor(name))  # type: ignore[attr-defined]
        except SafetensorError as error:
            raise self.fail(name, f"cannot be read: {error}") from error

    def _is_there(self, path: Path) -> bool:
        """Return whether there is a file; a link that leads nowhere is not an absent file."""
        try:
            is_file = path.is_file()
        except OSError as error:
            raise ModelError(f"{path}: cannot be read: {error.strerror}") from error
        if not is_file and (path.is_symlink() or path.exists()):
            raise ModelError(f"{path}: is not a file, or a link that leads to none")
        return is_file

    def _add_weights(self, path: Path, elsewhere: Collection[str] = ()) -> None:
        """Take the tensors of a file but those whose place is another one."""
        try:
            file = safe_open(path, framework="pt", device="cpu")
        except (SafetensorError, OSError, ValueError) as error:
            raise ModelError(f"{path}: not readable as safetensors: {error}") from error
        names = file.keys()  # type: ignore[no-untyped-call]
        self._homes.update({name: file for name in names if name not in elsewhere})

    def _weight_index(self, single: Path) -> dict[str, str]:
        name = "model.safetensors.index.json"
        index = self.optional_json(name)
        if index is None:
            raise ModelError(f"{single}: the file is missing, and so is {name}")
        homes = index.get("weight_map")
        if not isinstance(homes, dict) or not homes:
            raise ModelError(f"{self.folder / name}: weight_map: is not an object with tensors")
        for tensor, home in homes.items():
            if not isinstance(home, str) or not home or Path(home).name != home:
                fact = f"weight_map: {tensor}: {home!r} is not the name of a file"
                raise ModelError(f"{self.folder / name}: {fact}")
        return homes
