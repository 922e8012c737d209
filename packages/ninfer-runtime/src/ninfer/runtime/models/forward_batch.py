"""The rows of one forward pass, flattened: no padding columns, any mix of lengths.

N columns stand one after the other; row r owns columns ``first`` to ``first + columns``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ninfer.runtime.models.kv_pool import KvPool, SlotMap
from ninfer.runtime.models.recurrent_plan import RecurrentPlan, recurrent_plan


class RowInput(NamedTuple):
    """New tokens of one row and where its sequence lies; ``start`` tokens came before them.

    ``pool_row`` is where a hybrid model keeps the row's recurrent state.
    """

    token_ids: Sequence[int]
    start: int
    slots: SlotMap
    pool_row: int = 0


class RowPlan(NamedTuple):
    """How one row attends: its columns, and the keys it reads.

    ``run_begin`` names a contiguous run of slots, else ``gather`` lists them. ``mask`` bool
    [columns, length] is None where every column sees everything.
    """

    first: int
    columns: int
    length: int
    run_begin: int | None
    gather: Tensor | None
    mask: Tensor | None

    def read(self, pool: Tensor) -> Tensor:
        """Return one layer's keys or values of this row, [1, kv_heads, length, head_dim]."""
        _, kv_heads, head_dim = pool.shape
        token, head, number = pool.stride()
        if self.run_begin is not None:
            # One view instead of a slice, a transposition and a new axis: rows pay it every layer.
            shape, strides = (1, kv_heads, self.length, head_dim), (0, head, token, number)
            return pool.as_strided(shape, strides, pool.storage_offset() + self.run_begin * token)
        gathered = pool.index_select(0, self.gather)  # type: ignore[arg-type]
        return gathered.transpose(0, 1).unsqueeze(0)


class PagedPlan(NamedTuple):
    """How rows of equally many columns attend over their pages, whatever their lengths.

    Shapes: pages int64[R, L], the page table of every row; first and last int64[R, columns], the
            first and the last position that each column sees. Without ``first`` that is 0.
    """

    pages: Tensor
    last: Tensor
    first: Tensor | None = None


class ForwardBatch(NamedTuple):
    """Tokens, positions and slots of all columns, int64[N] on the device, and the rows.

    With ``paged`` all rows attend at once and ``rows`` is empty. ``recurrent`` is the plan of
    layers with recurrent states, None where the model has none.
    """

    token_ids: Tensor
    positions: Tensor
    slots: Tensor
    rows: tuple[RowPlan, ...]
    paged: PagedPlan | None = None
    recurrent: RecurrentPlan | None = None

    @property
    def last_columns(self) -> list[int]:
        """Return the last column of every row."""
        return [row.first + row.columns - 1 for row in self.rows]


def forward_batch(
    rows: Sequence[RowInput], pool: KvPool, *, is_whole: bool = False
) -> ForwardBatch:
    """Flatten rows for one pass over a pool; with ``is_whole`` all columns will be committed."""
    device = pool.device
    tokens = [token for row in rows for token in row.token_ids]
    ends = [row.start + len(row.token_ids) for row in rows]
    positions = [torch.arange(row.start, end) for row, end in zip(rows, ends, strict=True)]
    slots = [row.slots.slots(row.start, end) for row, end in zip(rows, ends, strict=True)]
    plans = []
    first = 0
    for row in rows:
        plans.append(_plan(row, first, device))
        first += len(row.token_ids)
    recurrent = None
    if pool.recurrent is not None:
        pool_rows, counts = [row.pool_row for row in rows], [len(row.token_ids) for row in rows]
        recurrent = recurrent_plan(pool_rows, counts, device, is_whole=is_whole)
    return ForwardBatch(
        torch.tensor(tokens).to(device),
        torch.cat(positions).to(device),
        torch.cat(slots).to(device),
        tuple(plans),
        recurrent=recurrent,
    )


def _plan(row: RowInput, first: int, device: torch.device) -> RowPlan:
    columns = len(row.token_ids)
    length = row.start + columns
    run_begin = row.slots.run_begin
    gather = row.slots.slots(0, length).to(device) if run_begin is None else None
    mask = None
    if columns > 1:
        seen = torch.arange(row.start, length, device=device)[:, None]
        mask = torch.arange(length, device=device) <= seen
    return RowPlan(first, columns, length, run_begin, gather, mask)
