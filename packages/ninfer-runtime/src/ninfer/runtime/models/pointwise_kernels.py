"""Small steps between matrix products, in Triton: each is one launch instead of several.

Implements: the norm of ninfer.runtime.models.norm and the gate of ninfer.runtime.models.mlp. Match:
their torch paths, up to the order of sums.
"""

# Triton reads annotations of a kernel's parameters as its own, and constants are spelled like such.
# ruff: noqa: ANN001, ANN202, N803
# mypy: disable-error-code="no-untyped-def,untyped-decorator"

from __future__ import annotations

from typing import Final

import torch
import triton
import triton.language as tl
from torch import Tensor

_GATE_BLOCK: Final = 1024


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Return x / sqrt(mean(x²) + eps) · weight over the last axis, in the format of x."""
    width = x.shape[-1]
    flat = x.reshape(-1, width)
    out = torch.empty(x.shape, device=x.device, dtype=x.dtype)
    block = max(16, triton.next_power_of_2(width))
    _rms_norm[(len(flat),)](flat, weight, out, flat.stride(0), width, eps, BLOCK=block, num_warps=4)
    return out


def gated(gate_up: Tensor) -> Tensor:
    """Return silu(gate) · up of [N, 2 · width], gate first."""
    columns, width = len(gate_up), gate_up.shape[1] // 2
    out = torch.empty((columns, width), device=gate_up.device, dtype=gate_up.dtype)
    grid = (columns, triton.cdiv(width, _GATE_BLOCK))
    _gated[grid](gate_up, out, gate_up.stride(0), width, BLOCK=_GATE_BLOCK, num_warps=4)
    return out


@triton.jit
def _rms_norm(x, weight, out, x_row, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    number = tl.arange(0, BLOCK)
    is_number = number < width
    value = tl.load(x + row * x_row + number, mask=is_number, other=0.0).to(tl.float32)
    scale = tl.load(weight + number, mask=is_number, other=0.0).to(tl.float32)
    value = value * tl.rsqrt(tl.sum(value * value, 0) / width + eps) * scale
    tl.store(out + row * width + number, value.to(out.dtype.element_ty), mask=is_number)


@triton.jit
def _gated(gate_up, out, row_stride, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    number = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    is_number = number < width
    gate = tl.load(gate_up + row * row_stride + number, mask=is_number, other=0.0).to(tl.float32)
    up = tl.load(gate_up + row * row_stride + width + number, mask=is_number, other=0.0)
    value = gate / (1.0 + tl.exp(-gate)) * up.to(tl.float32)
    tl.store(out + row * width + number, value.to(out.dtype.element_ty), mask=is_number)
