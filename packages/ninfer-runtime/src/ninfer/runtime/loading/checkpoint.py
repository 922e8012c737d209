"""A Hugging Face checkpoint folder: its JSON files and memory-mapped tensors."""

from __future__ import annotations

import json
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
        for path in self._weight_files():
            try:
                file = safe_open(path, framework="pt", device="cpu")
            except (SafetensorError, OSError) as error:
                raise ModelError(f"{path}: not readable as safetensors: {error}") from error
            names = file.keys()  # type: ignore[no-untyped-call]
            self._homes.update(dict.fromkeys(names, file))

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
        except ValueError as error:
            raise ModelError(f"{self.folder / name}: not JSON: {error}") from error
        if not isinstance(value, dict):
            raise ModelError(f"{self.folder / name}: not a JSON object")
        return value

    def optional_text(self, name: str) -> str | None:
        """Return the text of a file, or None where there is no such file.

        Raises: ModelError — the file is not UTF-8.
        """
        path = self.folder / name
        if not path.is_file():
            return None
        try:
            return path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ModelError(f"{path}: not UTF-8: {error}") from error

    def fail(self, name: str, fact: str) -> ModelError:
        """Return the error of one tensor or field, for the caller to raise."""
        return ModelError(f"{self.folder}: {name}: {fact}")

    def has(self, name: str) -> bool:
        """Return whether a file of the folder has a tensor."""
        return name in self._homes

    def tensor(self, name: str) -> torch.Tensor:
        """Return a tensor backed by the mapped file.

        Raises: ModelError — no file of the folder has it.
        """
        file = self._homes.get(name)
        if file is None:
            raise self.fail(name, "the tensor is missing")
        return cast("torch.Tensor", file.get_tensor(name))  # type: ignore[attr-defined]

    def _weight_files(self) -> list[Path]:
        single = self.folder / "model.safetensors"
        if single.is_file():
            return [single]
        index_name = "model.safetensors.index.json"
        index = self.optional_json(index_name)
        if index is None:
            raise ModelError(f"{single}: the file is missing, and so is {index_name}")
        homes = index.get("weight_map")
        if not isinstance(homes, dict):
            raise ModelError(f"{self.folder / index_name}: weight_map: is not an object")
        return [self.folder / str(name) for name in sorted(set(homes.values()))]
