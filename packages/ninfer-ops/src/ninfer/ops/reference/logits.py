"""Penalties and masks applied to float32 logits."""

from __future__ import annotations

import torch
from torch import Tensor

_NEGATIVE_INFINITY_BITS = -8388608  # 0xFF800000 as int32


def penalise(logits: Tensor, counts: Tensor, presence: Tensor, frequency: Tensor) -> Tensor:
    """Return the adjusted logits.

    Math:   z - (presence + frequency * count) where count > 0, else z; float32, every operation
            rounded by itself.
    Shapes: logits float32[N, V]; counts int32[N, V]; presence, frequency float32[N].
    """
    amount = frequency.unsqueeze(1) * counts.to(torch.float32)
    amount = amount + presence.unsqueeze(1)
    return torch.where(counts > 0, logits - amount, logits)


def mask_out(logits: Tensor, words: Tensor) -> Tensor:
    """Return the logits with minus infinity at every token that is not allowed.

    Math:   bit arithmetic instead of a select, because random bits make a select branch.
    Shapes: logits float32[N, V]; words int32[N, W].
    """
    keep = expand(words, logits.shape[1])
    bits = logits.contiguous().view(torch.int32)
    return ((bits & keep) | (~keep & _NEGATIVE_INFINITY_BITS)).view(torch.float32)


def expand(words: Tensor, token_domain: int) -> Tensor:
    """Return -1 for every allowed token and 0 for the others, int32[N, V]."""
    left = torch.arange(31, -1, -1, dtype=torch.int32, device=words.device)
    spread = (words.unsqueeze(-1) << left) >> 31
    return spread.view(words.shape[0], -1)[:, :token_domain]
