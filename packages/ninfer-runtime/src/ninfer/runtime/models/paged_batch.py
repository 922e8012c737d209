"""A forward batch whose plan is computed on the device, from one small buffer of fixed shape.

Every row has the same number of columns and as many page places as the longest row may need, so
that a captured graph serves every round of its shape.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ninfer.runtime.models.forward_batch import ForwardBatch, GatherPlan, RowInput
from ninfer.runtime.models.kv_pool import PAGE_TOKENS
from ninfer.runtime.models.recurrent_plan import uniform_plan


def pack_rows(rows: Sequence[RowInput], columns: int, pages: int) -> Tensor:
    """Return the buffer of rows of at most ``columns``, int64[R, 2 · columns + pages + 1].

    Shapes: token ids, then positions, then page numbers; a shorter row repeats its last column,
            which writes what that column writes; places without a page hold page 0, which no
            column attends to.
    """
    packed = []
    for row in rows:
        owned = row.slots.pages[:pages]
        places = [min(place, len(row.token_ids) - 1) for place in range(columns)]
        token_ids = [row.token_ids[place] for place in places]
        positions = [row.start + place for place in places]
        packed.append([*token_ids, *positions, *owned, *[0] * (pages - len(owned)), row.pool_row])
    return torch.tensor(packed)


def paged_batch(packed: Tensor, columns: int) -> ForwardBatch:
    """Return the batch that a buffer of ``pack_rows`` describes, computed where the buffer lies."""
    rows = packed.shape[0]
    token_ids, positions = packed[:, :columns], packed[:, columns : 2 * columns]
    pages = packed[:, 2 * columns : -1]
    offsets = torch.arange(PAGE_TOKENS, device=packed.device)
    slots = (pages.unsqueeze(-1) * PAGE_TOKENS + offsets).view(rows, -1)
    places = torch.arange(slots.shape[1], device=packed.device)
    mask = (places <= positions.unsqueeze(-1)).unsqueeze(1)
    return ForwardBatch(
        token_ids.flatten(),
        positions.flatten(),
        slots.gather(1, positions).flatten(),
        (),
        GatherPlan(slots.flatten(), mask),
        uniform_plan(packed[:, -1], columns),
    )
