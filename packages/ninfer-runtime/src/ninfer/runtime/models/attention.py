"""Attention of new columns over the pages of their rows."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from ninfer.runtime.models.forward_batch import ForwardBatch, RowPlan
from ninfer.runtime.models.paged_attention import attend_pages

SINGLE_THREAD_TOKENS = 2048
"""Keys of all rows together up to which waking threads costs more than it saves.

Measured on 2 threads with 8 rows, each product 16 µs on one thread and 34 µs on two at 100 keys;
a whole round took 0.75 of the time at 8 · 64 keys, 0.8 at 8 · 256, and more from 8 · 1,000 on.
Switching costs 0.2 µs.
"""


def attend(queries: Tensor, keys: Tensor, values: Tensor, batch: ForwardBatch) -> Tensor:
    """Return what every column attends to, [N, heads · head_dim].

    Math:   softmax(q kᵀ / √head_dim) v over the row's tokens up to the column's own; query heads
            share keys in groups of heads / kv_heads.
    Shapes: queries [N, heads, head_dim]; keys, values [slots, kv_heads, head_dim] of one layer.
    """
    if batch.paged is not None:
        attended = attend_pages(queries, keys, values, batch.paged)
    else:
        attended = _attend_rows(queries, keys, values, batch.rows)
    return attended.reshape(queries.shape[0], -1)


def _attend_rows(queries: Tensor, keys: Tensor, values: Tensor, rows: Sequence[RowPlan]) -> Tensor:
    """Attend row by row: no padding, and contiguous rows are read in place."""
    by_row = torch.split(queries, [row.columns for row in rows])
    if len(rows) == 1:
        return _attend_row(by_row[0], keys, values, rows[0])
    threads = torch.get_num_threads()
    if queries.device.type == "cpu" and sum(row.length for row in rows) <= SINGLE_THREAD_TOKENS:
        torch.set_num_threads(1)
    try:
        parts = [_attend_row(q, keys, values, row) for q, row in zip(by_row, rows, strict=True)]
    finally:
        torch.set_num_threads(threads)
    return torch.cat(parts, dim=1)


def _attend_row(queries: Tensor, keys: Tensor, values: Tensor, row: RowPlan) -> Tensor:
    attended = functional.scaled_dot_product_attention(
        queries.transpose(0, 1).unsqueeze(0),
        row.read(keys),
        row.read(values),
        attn_mask=row.mask,
        enable_gqa=True,
    )
    return attended.transpose(1, 2)
