"""Penalties and mask bits, element by element."""

from __future__ import annotations

import torch
from torch import Tensor


def penalise(logits: Tensor, counts: Tensor, presence: Tensor, frequency: Tensor) -> Tensor:
    """Return the adjusted logits.

    Math:   z - (presence + frequency * count) where count > 0, else z; float32, every operation
            rounded by itself.
    Shapes: float32 and integer counts, broadcastable.
    """
    amount = frequency * counts.to(torch.float32)
    amount = amount + presence
    return torch.where(counts > 0, logits - amount, logits)


def spread_bits(words: Tensor) -> Tensor:
    """Return the bits of every word, lowest first, bool[..., 32]."""
    places = torch.arange(32, dtype=torch.int32, device=words.device)
    return (words.unsqueeze(-1) >> places & 1) != 0


def allowed_tokens(words: Tensor, token_domain: int) -> Tensor:
    """Return which tokens are allowed, bool[N, V], of int32[N, W]."""
    return spread_bits(words).flatten(1)[:, :token_domain]
