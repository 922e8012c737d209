"""A GGUF file as typed fields and tensors; the only module that touches the ``gguf`` library.

Imported on the first start with a file only: parsing takes seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar, cast

import gguf
import numpy as np
import numpy.typing as npt

from ninfer.contract import ModelError
from ninfer.runtime.loading.gguf_header import check_header, printable

T = TypeVar("T", bool, int, float, str)


class GgufFile:
    """Metadata and tensors of one file.

    Raises: ModelError — the file cannot be parsed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        check_header(path)
        try:
            reader = gguf.GGUFReader(path)
        except (OSError, ValueError, IndexError, KeyError) as error:
            raise ModelError(f"{path}: not a readable GGUF file: {error}") from error
        self._reader = reader
        self._tensors = {tensor.name: tensor for tensor in reader.tensors}

    def fail(self, field: str, fact: str) -> ModelError:
        """Return the error of one field, for the caller to raise."""
        return ModelError(f"{self.path}: {printable(field)}: {fact}")

    def optional(self, field: str, kind: type[T]) -> T | None:
        """Return a scalar field, or None where the file has none.

        Raises: ModelError — the field has another type.
        """
        found = self._reader.fields.get(field)
        if found is None:
            return None
        value = found.contents()
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.fail(field, f"is {type(value).__name__}, not {kind.__name__}")
        return value

    def require(self, field: str, kind: type[T]) -> T:
        """Return a scalar field.

        Raises: ModelError — the field is missing or has another type.
        """
        value = self.optional(field, kind)
        if value is None:
            raise self.fail(field, "is missing")
        return value

    def positive(self, field: str) -> int:
        """Return a count above 0.

        Raises: ModelError — the field is missing or anything else.
        """
        value = self.require(field, int)
        if value <= 0:
            raise self.fail(field, f"{value} is not positive")
        return value

    def strings(self, field: str) -> list[str]:
        """Return an array of strings.

        Raises: ModelError — the field is missing or is not such an array.
        """
        items = self._array(field)
        if not all(isinstance(item, str) for item in items):
            raise self.fail(field, "is not an array of strings")
        return cast("list[str]", items)

    def integers(self, field: str) -> list[int]:
        """Return an array of integers.

        Raises: ModelError — the field is missing or is not such an array.
        """
        items = self._array(field)
        if not all(isinstance(item, int) for item in items):
            raise self.fail(field, "is not an array of integers")
        return cast("list[int]", items)

    def _array(self, field: str) -> list[object]:
        found = self._reader.fields.get(field)
        if found is None:
            raise self.fail(field, "is missing")
        value = found.contents()
        if not isinstance(value, list):
            raise self.fail(field, "is not an array")
        return value

    def has_field(self, field: str) -> bool:
        """Return whether the metadata has a field."""
        return field in self._reader.fields

    def tensor_names(self) -> Iterator[str]:
        """Yield the names in file order."""
        return iter(self._tensors)

    def has_tensor(self, name: str) -> bool:
        """Return whether a tensor exists."""
        return name in self._tensors

    def tensor_shape(self, name: str) -> tuple[int, ...]:
        """Return a tensor's shape, outermost axis first.

        Raises: ModelError — the tensor is missing.
        """
        found = self._tensors.get(name)
        if found is None:
            raise self.fail(name, "the tensor is missing")
        return tuple(int(n) for n in reversed(found.shape))

    def tensor(self, name: str) -> npt.NDArray[np.float32]:
        """Return a tensor dequantised to float32, outermost axis first.

        Raises: ModelError — the tensor is missing, its quantisation cannot be read, or it has
                numbers that are not finite.
        """
        found = self._tensors.get(name)
        if found is None:
            raise self.fail(name, "the tensor is missing")
        try:
            with np.errstate(all="ignore"):
                values = gguf.dequantize(found.data, found.tensor_type)
        except (NotImplementedError, ValueError) as error:
            raise self.fail(name, f"{found.tensor_type.name} cannot be dequantised") from error
        if not np.isfinite(values).all():
            raise self.fail(name, "has numbers that are not finite")
        shaped = values.astype(np.float32, copy=False).reshape(self.tensor_shape(name))
        return cast("npt.NDArray[np.float32]", shaped)
