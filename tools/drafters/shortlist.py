"""The tokens that a drafter may propose, and their part of the target's head."""

from __future__ import annotations

import torch
from torch import Tensor

from drafters.target import Target


class Shortlist:
    """Ascending token ids.

    Shapes: ids int64[S]; head [S, hidden], their rows of the target's head.
    """

    def __init__(self, ids: Tensor, target: Target) -> None:
        self.ids = ids.to(target.device, torch.int64)
        self.head = target.head[self.ids]
        self._places = torch.full((target.shape.vocab,), -1, device=target.device)
        self._places[self.ids] = torch.arange(len(ids), device=target.device)

    def place_of(self, tokens: Tensor) -> Tensor:
        """Return where tokens stand in the list, −1 where they do not."""
        return self._places[tokens]
