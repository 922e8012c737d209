"""What a drafter is told at a place: the target's law, or the token that was written there."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from drafters.shortlist import Shortlist

LAW_TEMPERATURE = 0.7
"""The law that is learned is as sharp as the text that was written."""


@torch.no_grad()
def told_law(hidden: Tensor, written: Tensor, is_held: Tensor, shortlist: Shortlist) -> Tensor:
    """Return a law over the shortlist for every place, float32[N, S].

    Math: softmax(head h / 0.7); where an answer was held to JSON the target's own law is not what
          was written, and all weight is on the token that was.
    Shapes: hidden [N, H], the target's before the place; written int64[N], places in the shortlist,
            read where held; is_held bool[N].
    """
    law = functional.linear(hidden, shortlist.head).float().div_(LAW_TEMPERATURE).softmax(-1)
    law *= ~is_held[:, None]
    return law.scatter_add_(1, written.clamp_min(0)[:, None], is_held.to(law.dtype)[:, None])
