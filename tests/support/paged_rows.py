"""Rows of one shape as the tensors that a staged round plans them from."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ninfer.runtime.models.forward_batch import ForwardBatch, RowInput
from ninfer.runtime.models.paged_batch import paged_batch


def paged(rows: Sequence[RowInput], pages: int, *, is_hybrid: bool = False) -> ForwardBatch:
    """Return the batch of rows with equally many columns and so many page places."""
    columns = len(rows[0].token_ids)
    tables = [[*row.slots.pages, *[0] * (pages - len(row.slots.pages))] for row in rows]
    return paged_batch(
        torch.tensor([row.token_ids for row in rows]),
        torch.tensor([range(row.start, row.start + columns) for row in rows]),
        torch.tensor(tables),
        pool_rows=torch.tensor([row.pool_row for row in rows]) if is_hybrid else None,
    )
