"""The target's head as a drafter uses it: over every token, or over those worth proposing."""

from __future__ import annotations

import torch
from torch import Tensor

from ninfer.runtime.models.decoder import Decoder

_UNIT_ROWS = 64
"""Unit vectors in one product while rows of a prepared head are read back."""


class DraftHead:
    """Scores the tokens that a drafter may propose.

    A shortlist int64[S] of ascending ids saves most of the product; it changes what is proposed
    and nothing else.
    """

    def __init__(self, target: Decoder, token_domain: int, shortlist: Tensor | None = None) -> None:
        self._target = target
        self._token_domain = token_domain
        self._ids = None if shortlist is None else shortlist.to(target.device, torch.int64)
        if self._ids is not None:
            self._rows = target.strategy.prepare(_head_rows(target, self._ids))

    def best(self, hidden: Tensor) -> Tensor:
        """Return the best token of every hidden state [N, hidden], int64[N]."""
        return self.tokens(self.logits(hidden).argmax(-1))

    def logits(self, hidden: Tensor) -> Tensor:
        """Return the logits of the tokens that may be proposed, [N, S], in the order of their ids.

        Shapes: hidden [N, hidden]; S is the token domain without a shortlist.
        """
        if self._ids is None:
            return self._target.logits(hidden)[:, : self._token_domain]
        return self._rows(hidden)

    def tokens(self, places: Tensor) -> Tensor:
        """Return the ids of places in :meth:`logits`, of any shape."""
        return places if self._ids is None else self._ids[places]


def _head_rows(target: Decoder, ids: Tensor) -> Tensor:
    """Return rows of the head, dtype[S, hidden]; a prepared head keeps no weight to read."""
    width = target.config.hidden
    units = torch.eye(width, device=target.device, dtype=target.dtype)
    parts = [
        target.logits(units[first : first + _UNIT_ROWS])[:, ids].to(target.dtype)
        for first in range(0, width, _UNIT_ROWS)
    ]
    return torch.cat(parts).t().contiguous()
