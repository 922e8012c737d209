"""A two-tap causal convolution around a sublayer, whose taps depend on the sublayer's input.

Source: reference contract, section 3.4.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ninfer.runtime.models.linear import LinearStrategy
from ninfer.runtime.models.weights import WeightReader

_SIDES, _TAPS = 2, 2


class BlockOrder(NamedTuple):
    """Which column stands before each one; a block's first column has none, and any is named.

    Shapes: previous int64[N]; is_first bool[N, 1].
    """

    previous: Tensor
    is_first: Tensor


class ConvTaps(NamedTuple):
    """What each channel takes of its own column and of the one before, [N, hidden] each."""

    own: Tensor
    before: Tensor

    def apply(self, x: Tensor, order: BlockOrder) -> Tensor:
        """Return ``own · x[i] + before · x[i − 1]`` for columns x [N, hidden]."""
        previous = x.index_select(0, order.previous).masked_fill(order.is_first, 0.0)
        return torch.addcmul(self.own * x, self.before, previous)


class DynamicConv:
    """Both sides of one sublayer: its input and its output are convolved with taps of their own.

    Math: tap[i, c] = base[c] + d[i, g(c)], d = W n_i for the normed input n, g(c) = c / group.
    """

    def __init__(
        self, prefix: str, hidden: int, group: int, weights: WeightReader, strategy: LinearStrategy
    ) -> None:
        self._group = group
        self._groups = hidden // group
        self._base = weights.read(f"{prefix}.base", (_SIDES, _TAPS, hidden))
        rows = _SIDES * _TAPS * self._groups
        kernel = weights.read(f"{prefix}.kernel_projection.weight", (rows, hidden))
        self._kernel = strategy.prepare(kernel)

    def taps(self, normed: Tensor) -> tuple[ConvTaps, ConvTaps]:
        """Return the taps of the input side and of the output side for columns [N, hidden]."""
        deltas = self._kernel(normed).view(-1, _SIDES, _TAPS, self._groups)
        taps = self._base + deltas.repeat_interleave(self._group, dim=-1)
        inward, outward = taps.unbind(1)
        return ConvTaps(*inward.unbind(1)), ConvTaps(*outward.unbind(1))
