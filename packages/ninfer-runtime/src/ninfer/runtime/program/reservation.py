"""Taking key-value memory from the device, or saying how much is not there."""

from __future__ import annotations

from collections.abc import Callable

from ninfer.contract import ProgramShape
from ninfer.runtime.models.kv_pool import KvPool


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
