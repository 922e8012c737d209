"""Where the columns of a forward batch lie in the blocks that recurrent layers compute.

Recurrent layers see rows of equally many columns; shorter rows are padded with dead columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor


class Padding(NamedTuple):
    """How flat columns become padded rows and back.

    Shapes: columns int64[R · T], the flat column of every place, any for a dead one; is_live
            bool[R, T]; places int64[N], the place of every flat column.
    """

    columns: Tensor
    is_live: Tensor
    places: Tensor


class RecurrentPlan(NamedTuple):
    """The rows of one forward batch as a block of T columns.

    ``pool_rows`` int64[R] says which recurrent states the rows read, ``counts`` int64[R] how many
    columns each has. ``padding`` is None where every row has T. With ``is_whole`` every column
    will be committed, so that no prefix must stay foldable.
    """

    pool_rows: Tensor
    counts: Tensor
    columns: int
    padding: Padding | None = None
    is_whole: bool = False

    def pad(self, flat: Tensor) -> Tensor:
        """Return [R, T, ...] of flat columns [N, ...]; dead columns hold copies of live ones."""
        shape = (len(self.pool_rows), self.columns, *flat.shape[1:])
        if self.padding is not None:
            flat = flat.index_select(0, self.padding.columns)
        return flat.view(shape)

    def clear_dead(self, padded: Tensor) -> Tensor:
        """Return [R, T, heads] with zeros in dead columns."""
        if self.padding is None:
            return padded
        return padded.masked_fill(~self.padding.is_live[..., None], 0.0)

    def flatten(self, padded: Tensor) -> Tensor:
        """Return the live columns [N, ...] of [R, T, ...]."""
        flat = padded.flatten(0, 1)
        return flat if self.padding is None else flat.index_select(0, self.padding.places)


def uniform_plan(pool_rows: Tensor, columns: int) -> RecurrentPlan:
    """Return the plan of rows with equally many columns, computed where ``pool_rows`` lies."""
    return RecurrentPlan(pool_rows, torch.full_like(pool_rows, columns), columns)


def recurrent_plan(
    pool_rows: Sequence[int], counts: Sequence[int], device: torch.device, *, is_whole: bool
) -> RecurrentPlan:
    """Return the plan of rows with any number of columns."""
    widest = max(counts)
    rows = torch.tensor(pool_rows).to(device)
    lengths = torch.tensor(counts)
    padding = None if min(counts) == widest else _padding(lengths, widest, device)
    return RecurrentPlan(rows, lengths.to(device), widest, padding, is_whole)


def _padding(counts: Tensor, widest: int, device: torch.device) -> Padding:
    firsts = torch.tensor([0, *accumulate(counts.tolist())][:-1])
    places = torch.arange(widest).expand(len(counts), -1)
    is_live = places < counts[:, None]
    columns = firsts[:, None] + torch.minimum(places, counts[:, None] - 1)
    live_places = is_live.flatten().nonzero().flatten()
    return Padding(columns.flatten().to(device), is_live.to(device), live_places.to(device))
