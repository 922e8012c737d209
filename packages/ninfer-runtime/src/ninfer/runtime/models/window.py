"""What columns see through a window: the keys of their row that are near them, on either side.

A window only limits what is read. Every entry of a row stays in the pool, and a column further on
reads others of them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ninfer.runtime.models.forward_batch import ForwardBatch, PagedPlan, RowPlan
from ninfer.runtime.models.kv_pool import PAGE_TOKENS


def seeing(batch: ForwardBatch, window: int | None) -> ForwardBatch:
    """Return the same columns, which see everything of their row or what lies within a window.

    Math: the column at p sees the key at t, 0 ≤ t < length of its row, iff |p − t| < window; with
          None it sees all of them. A paged batch says by ``last`` where its rows end.
    """
    if batch.paged is None:
        device = batch.token_ids.device
        return batch._replace(rows=tuple(_near_row(plan, window, device) for plan in batch.rows))
    if window is None or batch.paged.pages.shape[1] * PAGE_TOKENS <= window:
        return batch
    return batch._replace(paged=_near_pages(batch.paged, batch.positions, window))


def _near_row(plan: RowPlan, window: int | None, device: torch.device) -> RowPlan:
    if window is None or plan.length <= window:
        return plan._replace(mask=None)
    start = plan.length - plan.columns
    skipped = max(0, start - window + 1)
    mask = None
    if plan.columns > 1:
        own = torch.arange(start, plan.length, device=device)[:, None]
        mask = (own - torch.arange(skipped, plan.length, device=device)).abs() < window
    return plan._replace(
        length=plan.length - skipped,
        run_begin=None if plan.run_begin is None else plan.run_begin + skipped,
        gather=None if plan.gather is None else plan.gather[skipped:],
        mask=mask,
    )


def _near_pages(plan: PagedPlan, positions: Tensor, window: int) -> PagedPlan:
    own, reach = positions.view(plan.last.shape), window - 1
    first = (own - reach).clamp(min=0)
    return PagedPlan(plan.pages, torch.minimum(plan.last, own + reach), first)
