"""Several pools that one page table addresses: the target's, and a drafter's beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from ninfer.runtime.models.kv_pool import KvPool, SavedSlots


class KvGroup:
    """Copies, saves and restores the same slots of every pool."""

    def __init__(self, pools: Sequence[KvPool]) -> None:
        self._pools = tuple(pools)

    @property
    def token_bytes(self) -> int:
        """Return the bytes of one slot over all pools."""
        return sum(pool.token_bytes for pool in self._pools)

    @property
    def row_bytes(self) -> int:
        """Return the bytes of one row's recurrent states over all pools."""
        return sum(pool.row_bytes for pool in self._pools)

    def reset(self, row: int) -> None:
        """Forget a row's recurrent states."""
        for pool in self._pools:
            pool.reset(row)

    def copy(self, source: Tensor, target: Tensor) -> None:
        """Copy slots; source and target int64[N] share no slot."""
        for pool in self._pools:
            pool.copy(source, target)

    def save(self, slots: Tensor, row: int) -> SavedGroup:
        """Return host copies of slots int64[N] and of a row's recurrent states."""
        return SavedGroup(tuple(pool.save(slots, row) for pool in self._pools))

    def restore(self, slots: Tensor, row: int, saved: SavedGroup) -> None:
        """Write saved tokens to slots int64[N], and saved states to a row."""
        for pool, part in zip(self._pools, saved.parts, strict=True):
            pool.restore(slots, row, part)


class SavedGroup(NamedTuple):
    """Saved tokens of every pool, in the group's order."""

    parts: tuple[SavedSlots, ...]

    @property
    def host_bytes(self) -> int:
        """Return the bytes of all parts."""
        return sum(part.host_bytes for part in self.parts)
