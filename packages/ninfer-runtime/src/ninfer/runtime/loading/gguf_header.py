"""The header of a GGUF file, walked once to see that everything it counts lies within the file.

The format's own library trusts counts and offsets: it would loop without end over arrays that are
not there. Does not interpret what it walks over.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from ninfer.contract import ModelError

_VERSIONS = (2, 3)
_SCALAR_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_UINT32, _STRING, _ARRAY = 4, 8, 9
_ALIGNMENT_FIELD = "general.alignment"
_DEFAULT_ALIGNMENT = 32
_AXES = 4


def check_header(path: Path) -> None:
    """Check counts, types, names, offsets and sizes of everything that a file lists.

    Raises: ModelError — anything lies outside the file, has an unknown type, occurs twice, or is
            not UTF-8; the message names the field or tensor.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            _Walk(path, data).check()
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: not a readable GGUF file: {error}") from error


def printable(name: str) -> str:
    """Return a name as one line of text, whatever a file calls its fields and tensors."""
    return name if name.isprintable() else repr(name)


class _Walk:
    """A place in the bytes, and what the place is called."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self._path = path
        self._data = data
        self._place = 0
        self._name = "header"

    def check(self) -> None:
        """Walk over header, fields and tensors."""
        self._skip(4)
        version = self._number("<I")
        if version not in _VERSIONS:
            served = ", ".join(map(str, _VERSIONS))
            raise self._fail(f"version {version} is not served (served: {served}, little-endian)")
        tensors, fields = self._number("<Q"), self._number("<Q")
        alignment = self._fields(fields)
        self._tensors(tensors, alignment)

    def _fields(self, count: int) -> int:
        """Return the alignment of the tensors."""
        alignment, names = _DEFAULT_ALIGNMENT, set[str]()
        for index in range(count):
            self._name = f"metadata field {index} of {count}"
            self._name = self._new_name(names)
            kind = self._number("<I")
            if self._name == _ALIGNMENT_FIELD and kind == _UINT32:
                (alignment,) = struct.unpack_from("<I", self._data, self._skip(4))
                if alignment == 0 or alignment & (alignment - 1):
                    raise self._fail(f"{alignment} is not a power of two")
            else:
                self._value(kind)
        return alignment

    def _tensors(self, count: int, alignment: int) -> None:
        listed, names = list[tuple[str, int, int]](), set[str]()
        for index in range(count):
            self._name = f"tensor {index} of {count}"
            self._name = self._new_name(names)
            listed.append((self._name, *self._tensor(alignment)))
        begin = -(-self._place // alignment) * alignment
        for self._name, offset, size in listed:
            if begin + offset + size > len(self._data):
                raise self._fail(f"the file ends before its {size} bytes")

    def _tensor(self, alignment: int) -> tuple[int, int]:
        """Return a tensor's offset and size in bytes."""
        axes = self._number("<I")
        if not 1 <= axes <= _AXES:
            raise self._fail(f"{axes} axes are not 1 to {_AXES}")
        shape = [self._number("<Q") for _ in range(axes)]
        kind = self._number("<I")
        offset = self._number("<Q")
        if kind not in {known.value for known in GGML_QUANT_SIZES}:
            raise self._fail(f"type {kind} is not known")
        if offset % alignment:
            raise self._fail(f"offset {offset} is not a multiple of {alignment}")
        block, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
        if not all(shape) or shape[0] % block:
            raise self._fail(f"shape {shape[::-1]} is not of whole blocks of {block}")
        numbers = 1
        for axis in shape:
            numbers *= axis
        return offset, numbers // block * block_bytes

    def _value(self, kind: int) -> None:
        if kind == _STRING:
            self._text()
        elif kind == _ARRAY:
            self._array()
        elif kind in _SCALAR_BYTES:
            self._skip(_SCALAR_BYTES[kind])
        else:
            raise self._fail(f"type {kind} is not known")

    def _array(self) -> None:
        kind, count = self._number("<I"), self._number("<Q")
        if kind in _SCALAR_BYTES:
            self._skip(count * _SCALAR_BYTES[kind])
        elif kind == _STRING:
            for _ in range(count):
                self._text()
        else:
            raise self._fail(f"arrays of type {kind} are not served")

    def _new_name(self, names: set[str]) -> str:
        name = self._text()
        if name in names:
            raise self._fail(f"{name!r} occurs twice")
        names.add(name)
        return name

    def _text(self) -> str:
        size = self._number("<Q")
        begin = self._skip(size)
        try:
            return self._data[begin : begin + size].decode()
        except UnicodeDecodeError as error:
            raise self._fail("a text is not UTF-8") from error

    def _number(self, form: str) -> int:
        (value,) = struct.unpack_from(form, self._data, self._skip(struct.calcsize(form)))
        return int(value)

    def _skip(self, size: int) -> int:
        """Return the place before some bytes and go behind them."""
        begin = self._place
        if begin + size > len(self._data):
            raise self._fail(f"the file ends before {size} bytes that it counts")
        self._place = begin + size
        return begin

    def _fail(self, fact: str) -> ModelError:
        return ModelError(
            f"{self._path}: not a readable GGUF file: {printable(self._name)}: {fact}"
        )
