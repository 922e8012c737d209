"""The CUDA library: where it is, whether it can serve, and the workspace it needs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from ninfer.contract import DeviceFailure, NInferError, RowMismatch

LIBRARY: Final = Path(__file__).parent / "lib" / "libninfer_ops.so"


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Which implementation CUDA tensors take, and why; CPU tensors always take torch."""

    cuda_library: bool
    reason: str


@cache
def capabilities() -> Capabilities:
    """Return which implementation serves CUDA tensors in this process."""
    if not LIBRARY.exists():
        return Capabilities(False, f"{LIBRARY.name} is not built (tools/build_cuda)")
    if not torch.cuda.is_available():
        return Capabilities(False, "no CUDA device")
    try:
        load_library()
    except DeviceFailure as failure:
        return Capabilities(False, str(failure))
    return Capabilities(True, f"{LIBRARY.name} is loaded")


@cache
def load_library(path: Path = LIBRARY) -> Any:
    """Return the loaded module; its functions are the exported names of ``cuda/*.cu``.

    Raises: DeviceFailure — the library or tvm-ffi is missing or cannot be loaded.
    """
    try:
        import tvm_ffi

        module = tvm_ffi.load_module(str(path))
    except (ImportError, RuntimeError, OSError, ValueError) as error:
        raise DeviceFailure(f"{path.name}: {error}") from error
    errors: tuple[type[NInferError], ...] = (RowMismatch, DeviceFailure)
    for error_type in errors:
        tvm_ffi.register_error(error_type.__name__, error_type)
    return module


def library_for(logits: Tensor) -> Any | None:
    """Return the library when it serves these logits, else None: torch does."""
    if logits.device.type != "cuda" or not capabilities().cuda_library:
        return None
    return load_library()


def reserve_workspace(columns: int, device: torch.device | str) -> Tensor:
    """Return zeroed scratch memory for launches of up to ``columns`` logit columns.

    Units:   columns are rows for sampling and rows times positions for acceptance.
    Effects: keep it as long as captured graphs use it; launches that share it must not overlap.
             Empty where torch serves, which needs none.
    """
    size = 0
    if torch.device(device).type == "cuda" and capabilities().cuda_library:
        size = int(load_library().workspace_bytes(columns))
    return torch.zeros(size, dtype=torch.uint8, device=device)
