"""The table of committed generated tokens that penalties read."""

from __future__ import annotations

import torch
from torch import Tensor


def count_tokens(counts: Tensor, counts_rows: Tensor, tokens: Tensor, lengths: Tensor) -> None:
    """Add the first tokens of every row to its counts.

    Math:    counts[counts_rows[b], tokens[b, i]] += 1 for i < lengths[b].
    Shapes:  counts int32[rows, V], contiguous; counts_rows [B]; tokens int64[B, P]; lengths [B],
             0 for a row that committed nothing.
    Effects: ``counts`` is written in place; the device is not waited for.
    Source:  reference contract, section 2: only committed generated tokens count.
    """
    place = torch.arange(tokens.shape[1], device=tokens.device)
    added = (place < lengths.unsqueeze(1)).to(counts.dtype)
    cells = counts_rows.to(torch.int64).unsqueeze(1) * counts.shape[1] + tokens
    counts.view(-1).scatter_add_(0, cells.flatten(), added.flatten())
