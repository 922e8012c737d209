"""Attention of new columns over the pages of their rows."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from ninfer.runtime.models.forward_batch import ForwardBatch, GatherPlan, RowPlan


def attend(queries: Tensor, keys: Tensor, values: Tensor, batch: ForwardBatch) -> Tensor:
    """Return what every column attends to, [N, heads · head_dim].

    Math:   softmax(q kᵀ / √head_dim) v over the row's tokens up to the column's own; query heads
            share keys in groups of heads / kv_heads.
    Shapes: queries [N, heads, head_dim]; keys, values [slots, kv_heads, head_dim] of one layer.
    """
    if batch.gathered is not None:
        attended = _attend_gathered(queries, keys, values, batch.gathered)
    else:
        attended = _attend_rows(queries, keys, values, batch.rows)
    return attended.reshape(queries.shape[0], -1)


def _attend_rows(queries: Tensor, keys: Tensor, values: Tensor, rows: Sequence[RowPlan]) -> Tensor:
    """Attend row by row: no padding, and contiguous rows are read in place."""
    by_row = torch.split(queries, [row.columns for row in rows])
    parts = []
    for row, q in zip(rows, by_row, strict=True):
        out = functional.scaled_dot_product_attention(
            q.transpose(0, 1).unsqueeze(0),
            row.read(keys),
            row.read(values),
            attn_mask=row.mask,
            enable_gqa=True,
        )
        parts.append(out.transpose(1, 2))
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)


def _attend_gathered(queries: Tensor, keys: Tensor, values: Tensor, plan: GatherPlan) -> Tensor:
    """Attend in one product over copies of the rows' pages: fixed shapes, fixed addresses."""
    rows, _, columns, length = plan.mask.shape
    shape = (rows, length, *keys.shape[1:])
    out = functional.scaled_dot_product_attention(
        queries.view(rows, columns, *queries.shape[1:]).transpose(1, 2),
        keys.index_select(0, plan.read_slots).view(shape).transpose(1, 2),
        values.index_select(0, plan.read_slots).view(shape).transpose(1, 2),
        attn_mask=plan.mask,
        enable_gqa=True,
    )
    return out.transpose(1, 2)
