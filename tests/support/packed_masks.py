"""Packed masks built bit by bit from sets of tokens."""

from collections.abc import Iterable, Sequence

import torch


def packed(rows: Sequence[Iterable[int] | None], domain: int) -> torch.Tensor:
    """Return int32[B, W]; a row of None is filled with a pattern that no op may read."""
    words = (domain + 31) // 32
    out = torch.zeros((len(rows), words), dtype=torch.int64)
    for row, allowed in enumerate(rows):
        if allowed is None:
            out[row] = 0x5A5A5A5A
            continue
        for token in allowed:
            out[row, token // 32] |= 1 << token % 32
    return torch.where(out >= 1 << 31, out - (1 << 32), out).to(torch.int32)
