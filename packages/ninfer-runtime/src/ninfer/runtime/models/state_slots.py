"""Copies of single rows' recurrent states, in a number of slots that is fixed from the start."""

from __future__ import annotations

import torch

from ninfer.runtime.models.recurrent_pool import RecurrentPool


class StateSlots:
    """Storage for copies, on the device of the pool that they are taken from.

    Shapes: as the pool's, with the slot in front, so that one copy lies in one piece.
    Effects: a copy either way waits for nothing on the host and follows the stream's order.
    """

    def __init__(self, pool: RecurrentPool, slots: int) -> None:
        self._pool = pool
        # Not zeroed: a slot is read only after it was written, and what nobody writes need not be
        # backed by memory.
        self._tails = _stored(pool.tails, slots)
        self._states = _stored(pool.states, slots)

    @property
    def slots(self) -> int:
        """Return the number of slots."""
        return len(self._states)

    @property
    def stored_bytes(self) -> int:
        """Return the bytes of all slots."""
        return self._tails.nbytes + self._states.nbytes

    def save(self, row: int, slot: int) -> None:
        """Copy a row's states to a slot."""
        self._tails[slot].copy_(self._pool.tails[:, row])
        self._states[slot].copy_(self._pool.states[:, row])

    def restore(self, slot: int, row: int) -> None:
        """Copy a slot's states to a row."""
        self._pool.tails[:, row].copy_(self._tails[slot])
        self._pool.states[:, row].copy_(self._states[slot])


def _stored(rows: torch.Tensor, slots: int) -> torch.Tensor:
    layers, _, *rest = rows.shape
    return torch.empty((slots, layers, *rest), device=rows.device, dtype=rows.dtype)
