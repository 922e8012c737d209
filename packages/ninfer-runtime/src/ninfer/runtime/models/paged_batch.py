"""A forward batch planned where its numbers lie, from tensors of fixed shapes.

Every row has the same number of columns, so that a captured graph serves every round of its shape.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ninfer.runtime.models.forward_batch import ForwardBatch, PagedPlan
from ninfer.runtime.models.kv_pool import PAGE_TOKENS
from ninfer.runtime.models.recurrent_plan import uniform_plan


def clamped_places(columns: int, last: Tensor) -> Tensor:
    """Return the places of a row's columns, int64[R, columns], of which ``last`` [R] is the last.

    Later columns repeat the last one: they write what it writes, where it writes.
    """
    places = torch.arange(columns, device=last.device)
    return torch.minimum(places, last.unsqueeze(1)).clamp(min=0)


def slots_of(pages: Tensor, positions: Tensor) -> Tensor:
    """Return the slots of positions int64[R, C] by the rows' page tables int64[R, L]."""
    return pages.gather(1, positions // PAGE_TOKENS) * PAGE_TOKENS + positions % PAGE_TOKENS


def paged_batch(
    token_ids: Tensor,
    positions: Tensor,
    pages: Tensor,
    *,
    last: Tensor | None = None,
    pool_rows: Tensor | None = None,
) -> ForwardBatch:
    """Return the batch of rows with equally many columns.

    Shapes: token_ids, positions int64[R, C]; pages int64[R, L]; last int64[R, C], the last
            position that each column sees, None for its own; pool_rows int64[R], where a hybrid
            keeps the rows' states.
    """
    recurrent = None if pool_rows is None else uniform_plan(pool_rows, positions.shape[1])
    return ForwardBatch(
        token_ids.flatten(),
        positions.flatten(),
        slots_of(pages, positions).flatten(),
        (),
        PagedPlan(pages, positions if last is None else last),
        recurrent,
    )
