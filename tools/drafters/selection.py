"""Picks places out of batches in few sizes, so that a device meets the same shapes again."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

SIZE_STEP = 1024
"""Picked places come in multiples of this."""


class Selection(NamedTuple):
    """Flat places, and which of them are real.

    Shapes: places int64[N]; real bool[N], false in the filling, which names place 0.
    """

    places: Tensor
    real: Tensor

    @classmethod
    def of(cls, wanted: Tensor) -> Selection:
        """Select the places where ``wanted`` is true."""
        places = wanted.flatten().nonzero()[:, 0]
        size = max(1, -(-len(places) // SIZE_STEP)) * SIZE_STEP
        real = torch.arange(size, device=wanted.device) < len(places)
        return cls(functional.pad(places, (0, size - len(places))), real)

    def rows(self, values: Tensor) -> Tensor:
        """Return vectors [N, ...] out of [..., width]."""
        return values.flatten(0, -2).index_select(0, self.places)

    def of_each(self, values: Tensor) -> Tensor:
        """Return numbers [N] out of a tensor of the shape that was selected from."""
        return values.flatten().index_select(0, self.places)

    def mean(self, values: Tensor, weight: Tensor | None = None) -> Tensor:
        """Return the weighted mean of numbers [N] over the real places."""
        shares = self.real.to(values.dtype) if weight is None else self.real * weight
        return (values.masked_fill(~self.real, 0.0) * shares).sum() / shares.sum().clamp_min(1e-6)
