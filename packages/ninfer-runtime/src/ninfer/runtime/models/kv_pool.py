"""Keys and values of all attention layers, in pages addressed by slots.

A slot holds one token of every layer: slot = page · PAGE_TOKENS + offset. A row whose pages
follow each other is read as a view; any other row is gathered. Who owns which page is decided
by :mod:`ninfer.runtime.program.pages`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from ninfer.runtime.models.recurrent_pool import RecurrentPool

PAGE_TOKENS = 64
"""Tokens of one page."""


class KvPool:
    """Storage for keys and values; a hybrid model's recurrent states lie beside them.

    Shapes: keys and values dtype[layers, pages · PAGE_TOKENS, kv_heads, head_dim]; ``layers`` holds
            the views of both for each layer.
    """

    def __init__(
        self,
        layers: int,
        pages: int,
        kv_heads: int,
        head_dim: int,
        *,
        device: torch.device,
        dtype: torch.dtype,
        recurrent: RecurrentPool | None = None,
    ) -> None:
        shape = (layers, pages * PAGE_TOKENS, kv_heads, head_dim)
        # Zeroed, so that a masked slot nobody wrote cannot bring a NaN into a product.
        self.keys = torch.zeros(shape, device=device, dtype=dtype)
        self.values = torch.zeros(shape, device=device, dtype=dtype)
        self.layers = tuple(zip(self.keys, self.values, strict=True))
        self.device = device
        self.recurrent = recurrent

    @property
    def token_bytes(self) -> int:
        """Return the bytes of one slot over all layers."""
        return 2 * self.keys[:, 0].nbytes

    def copy(self, source: Tensor, target: Tensor) -> None:
        """Copy slots of every layer; source and target int64[N] share no slot."""
        source, target = source.to(self.device), target.to(self.device)
        self.keys.index_copy_(1, target, self.keys.index_select(1, source))
        self.values.index_copy_(1, target, self.values.index_select(1, source))

    def save(self, slots: Tensor) -> SavedSlots:
        """Return host copies of slots int64[N]."""
        chosen = slots.to(self.device)
        return SavedSlots(
            self.keys.index_select(1, chosen).cpu(), self.values.index_select(1, chosen).cpu()
        )

    def restore(self, slots: Tensor, saved: SavedSlots) -> None:
        """Write saved tokens to slots int64[N]."""
        chosen = slots.to(self.device)
        self.keys.index_copy_(1, chosen, saved.keys.to(self.device))
        self.values.index_copy_(1, chosen, saved.values.to(self.device))


class SavedSlots(NamedTuple):
    """Tokens of all layers in host memory, dtype[layers, N, kv_heads, head_dim] each."""

    keys: Tensor
    values: Tensor

    @property
    def host_bytes(self) -> int:
        """Return the bytes of both."""
        return self.keys.nbytes + self.values.nbytes


class SlotMap:
    """Where the tokens of one sequence lie: a page table, read as a run where possible."""

    def __init__(self, pages: Sequence[int]) -> None:
        self.pages = tuple(pages)
        follows = all(right == left + 1 for left, right in pairwise(self.pages))
        self.run_begin = self.pages[0] * PAGE_TOKENS if self.pages and follows else None

    @property
    def capacity_tokens(self) -> int:
        """Return how many tokens the pages hold."""
        return len(self.pages) * PAGE_TOKENS

    def slots(self, begin: int, end: int) -> Tensor:
        """Return the slots of positions begin..end-1, int64 in host memory."""
        positions = torch.arange(begin, end)
        if self.run_begin is not None:
            return positions + self.run_begin
        table = torch.tensor(self.pages)
        return table[positions // PAGE_TOKENS] * PAGE_TOKENS + positions % PAGE_TOKENS
