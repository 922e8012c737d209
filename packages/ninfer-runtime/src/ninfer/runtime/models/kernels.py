"""Whether this project's device kernels can serve; elsewhere plain torch computes the same."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec


@cache
def has_kernels(device_type: str) -> bool:
    """Return whether kernels in Triton run on such a device."""
    return device_type == "cuda" and find_spec("triton") is not None
