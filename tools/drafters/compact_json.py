"""Which tokens may follow in compact JSON, as tables that a device reads for many rows at once.

Close to the language, not equal to it: strings, nesting and white space are held to, the order of
keys, colons and commas is left to the model. Text that is to be kept is parsed afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

DEEPEST = 3
"""Nesting from which on depths are alike."""
FREE, OVER = 2 * DEEPEST, 2 * DEEPEST + 1
"""Rows without a rule; rows whose value has ended, which take an end token and nothing else."""
_OUTSIDE = frozenset(b'{}[]:,"-+.0123456789eE')
_WORDS = (b"true", b"false", b"null")


@dataclass(frozen=True, slots=True)
class JsonTables:
    """What each token does.

    Shapes: allowed bool[2 · DEEPEST + 2, V] by the row's state; inside int64[2, V], whether a
            string is open after the token, by whether one was before; depth int64[2, V], what it
            adds to the nesting.
    """

    allowed: Tensor
    inside: Tensor
    depth: Tensor

    def states(self, inside: Tensor, depth: Tensor, is_held: Tensor) -> Tensor:
        """Return the state of every row, int64[B]; a row that is not held is free."""
        held = inside * DEEPEST + depth.clamp(1, DEEPEST) - 1
        held = torch.where(depth <= 0, OVER, held)
        return torch.where(is_held, held, FREE)


def json_tables(
    vocabulary: Sequence[bytes | None], ends: Sequence[int], device: torch.device
) -> JsonTables:
    """Build the tables; None stands for tokens that are no text."""
    size = len(vocabulary)
    allowed = torch.zeros((2 * DEEPEST + 2, size), dtype=torch.bool)
    inside = torch.zeros((2, size), dtype=torch.int64)
    depth = torch.zeros((2, size), dtype=torch.int64)
    allowed[FREE] = True
    allowed[OVER, list(ends)] = True
    for token, text in enumerate(vocabulary):
        for start in (0, 1) if text else ():
            is_legal, after, change, lowest = _walk(text or b"", start)
            inside[start, token], depth[start, token] = after, change
            for level in range(1, DEEPEST + 1):
                fits = level + lowest > 0 or level + lowest == 0 == level + change
                allowed[start * DEEPEST + level - 1, token] = is_legal and fits
    return JsonTables(allowed.to(device), inside.to(device), depth.to(device))


def _walk(text: bytes, inside: int) -> tuple[bool, int, int, int]:
    """Return whether a token may stand there, the state after it, its nesting and the lowest."""
    is_legal, depth, lowest, outside = b"\\" not in text, 0, 0, bytearray()
    for byte in text:
        if byte == 0x22:
            inside ^= 1
            outside.append(byte)
        elif inside:
            is_legal &= byte >= 0x20
        else:
            outside.append(byte)
            depth += (byte in b"{[") - (byte in b"}]")
            lowest = min(lowest, depth)
    rest = bytes(outside)
    for word in _WORDS:
        rest = rest.replace(word, b"")
    return is_legal and _OUTSIDE.issuperset(rest), inside, depth, lowest


def token_bytes(pieces: Sequence[str | None]) -> list[bytes | None]:
    """Return what byte-level tokens spell; None where a piece is not spelled in bytes."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    byte_of = {chr(byte): byte for byte in printable}
    byte_of |= {chr(0x100 + place): byte for place, byte in enumerate(others)}
    return [
        bytes(byte_of[c] for c in piece) if piece and byte_of.keys() >= set(piece) else None
        for piece in pieces
    ]
