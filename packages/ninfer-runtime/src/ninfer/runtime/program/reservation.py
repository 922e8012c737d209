"""Taking memory from the device, or saying how much is not there."""

from __future__ import annotations

from collections.abc import Callable

from ninfer.contract import ProgramShape
from ninfer.runtime.models.kv_pool import PAGE_TOKENS, KvPool
from ninfer.runtime.models.recurrent_pool import RecurrentPool
from ninfer.runtime.models.state_slots import StateSlots

CHECKPOINTS_OF_PAGE = 2
"""Checkpoints that one page of tokens can be worth; more would have no tokens to stand for."""


def reserved(shape: ProgramShape, reserve: Callable[[], KvPool]) -> KvPool:
    """Return a pool for the tokens of a shape.

    Raises: ValueError — the device has no room for it.
    """
    try:
        return reserve()
    except RuntimeError as error:
        # What torch raises where an allocation fails, on every device.
        first = str(error).splitlines()[0]
        raise ValueError(
            f"kv_tokens: no memory for the keys and values of {shape.kv_tokens} tokens: {first}"
        ) from error


def reserved_slots(
    shape: ProgramShape, pool: RecurrentPool | None, budget_bytes: int
) -> StateSlots | None:
    """Return the slots for copies of recurrent states that a budget pays; None without states.

    Raises: ValueError — the device has no room for them.
    """
    if pool is None:
        return None
    most = CHECKPOINTS_OF_PAGE * (shape.kv_tokens // PAGE_TOKENS)
    slots = min(budget_bytes // pool.row_bytes, most)
    try:
        return StateSlots(pool, slots)
    except RuntimeError as error:
        first = str(error).splitlines()[0]
        raise ValueError(
            f"state_checkpoint_bytes: no memory for {slots} recurrent states of {pool.row_bytes}"
            f" bytes: {first}"
        ) from error
