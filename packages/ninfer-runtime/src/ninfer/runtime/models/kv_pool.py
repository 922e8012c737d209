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

from ninfer.runtime.models.recurrent_pool import RecurrentPool, SavedStates

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

    @property
    def kv_bytes(self) -> int:
        """Return the bytes of all keys and values."""
        return self.keys.nbytes + self.values.nbytes

    @property
    def state_bytes(self) -> int:
        """Return the bytes of all rows' recurrent states."""
        return 0 if self.recurrent is None else self.recurrent.state_bytes

    @property
    def row_bytes(self) -> int:
        """Return the bytes of one row's recurrent states."""
        return 0 if self.recurrent is None else self.recurrent.row_bytes

    def copy(self, source: Tensor, target: Tensor) -> None:
        """Copy slots of every layer; source and target int64[N] share no slot."""
        source, target = source.to(self.device), target.to(self.device)
        self.keys.index_copy_(1, target, self.keys.index_select(1, source))
        self.values.index_copy_(1, target, self.values.index_select(1, source))

    def save(self, slots: Tensor, row: int) -> SavedSlots:
        """Return host copies of slots int64[N] and of a row's recurrent states."""
        chosen = slots.to(self.device)
        return SavedSlots(
            self.keys.index_select(1, chosen).cpu(),
            self.values.index_select(1, chosen).cpu(),
            None if self.recurrent is None else self.recurrent.save(row),
        )

    def restore(self, slots: Tensor, row: int, saved: SavedSlots) -> None:
        """Write saved tokens to slots int64[N], and saved states to a row."""
        chosen = slots.to(self.device)
        self.keys.index_copy_(1, chosen, saved.keys.to(self.device))
        self.values.index_copy_(1, chosen, saved.values.to(self.device))
        if self.recurrent is not None and saved.states is not None:
            self.recurrent.restore(row, saved.states)

    def reset(self, row: int) -> None:
        """Forget a row's recurrent states; keys and values need no such thing."""
        if self.recurrent is not None:
            self.recurrent.reset(row)

    def commit(self, accepted: Sequence[int]) -> None:
        """Keep the first ``accepted[r]`` columns of every row of the last pass.

        Keys and values are where they belong already; recurrent states take their records in.
        """
        if self.recurrent is not None:
            self.recurrent.commit(accepted)

    def commit_all(self) -> None:
        """Keep every column of the last pass."""
        if self.recurrent is not None:
            self.recurrent.commit_all()

    def drop(self) -> None:
        """Keep nothing of the last pass."""
        if self.recurrent is not None:
            self.recurrent.drop()


class SavedSlots(NamedTuple):
    """Tokens of all layers in host memory, dtype[layers, N, kv_heads, head_dim] each.

    ``states`` are the recurrent states after them, None for a dense model.
    """

    keys: Tensor
    values: Tensor
    states: SavedStates | None = None

    @property
    def host_bytes(self) -> int:
        """Return the bytes of everything."""
        states = 0 if self.states is None else self.states.host_bytes
        return self.keys.nbytes + self.values.nbytes + states


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
