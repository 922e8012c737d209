"""What stands before and after the gated delta rule in its layer, in Triton: one launch each.

Implements: the convolution, the scaling and the gates of
ninfer.runtime.models.hybrid_block.DeltaBlock, and its gated norm. Match: its torch path, up to the
order of sums. Assumes: rows of equally many columns, none of them dead.
"""

# Triton reads annotations of a kernel's parameters as its own, and constants are spelled like such.
# ruff: noqa: ANN001, ANN202, N803
# mypy: disable-error-code="no-untyped-def,untyped-decorator"

from __future__ import annotations

from typing import Final, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from ninfer.runtime.models.config import DeltaConfig

_JOINED: Final = 1024


class MixerInputs(NamedTuple):
    """What the rule is applied to.

    Shapes: queries and keys float32[R, value_heads, T, dk]; values [R, value_heads, T, dv]; decay
            and beta float32[R, value_heads, T].
    """

    queries: Tensor
    keys: Tensor
    values: Tensor
    decay: Tensor
    beta: Tensor


def joined(tails: Tensor, pool_rows: Tensor, new: Tensor, columns: int) -> Tensor:
    """Return the tail of every row and then its new columns, dtype[R, tail + T, conv_rows].

    Shapes: tails dtype[rows, tail, conv_rows] of one layer, of which row r takes ``pool_rows[r]``;
            new dtype[R · T, conv_rows].
    """
    _, tail, width = tails.shape
    rows = len(pool_rows)
    out = torch.empty((rows, tail + columns, width), device=new.device, dtype=new.dtype)
    grid = (rows, tail + columns, triton.cdiv(width, _JOINED))
    _join[grid](
        tails, pool_rows, new, out, *tails.stride()[:2], pool_rows.stride(0), new.stride(0),
        tail, width, BLOCK=_JOINED, num_warps=4,
    )  # fmt: skip
    return out


def convolve(
    config: DeltaConfig,
    inputs: Tensor,
    conv: Tensor,
    a: Tensor,
    b: Tensor,
    rate: Tensor,
    step_bias: Tensor,
    unit_eps: float,
) -> MixerInputs:
    """Return queries, keys, values and gates of every column.

    Shapes: inputs dtype[R, conv_columns − 1 + T, conv_rows]; conv float32[conv_columns, conv_rows];
            a, b dtype[R, T, value_heads]; rate, step_bias float32[value_heads].
    """
    c = config
    rows, columns = inputs.shape[0], inputs.shape[1] - c.conv_columns + 1
    shape = (rows, c.value_heads, columns)
    queries = torch.empty((*shape, c.key_dim), device=inputs.device)
    values = torch.empty((*shape, c.value_dim), device=inputs.device)
    keys, decay = torch.empty_like(queries), torch.empty(shape, device=inputs.device)
    beta = torch.empty_like(decay)
    _convolve[(rows, columns, c.value_heads)](
        inputs, conv, a, b, rate, step_bias, queries, keys, values, decay, beta,
        inputs.stride(0), inputs.stride(1), conv.stride(0),
        a.stride(0), a.stride(1), b.stride(0), b.stride(1),
        c.value_heads // c.key_heads, c.key_rows, c.key_dim, c.value_dim,
        c.key_dim**-0.5, unit_eps,
        TAPS=c.conv_columns, KEY=triton.next_power_of_2(c.key_dim),
        VALUE=triton.next_power_of_2(c.value_dim), num_warps=1,
    )  # fmt: skip
    return MixerInputs(queries, keys, values, decay, beta)


def gated_norm(
    read: Tensor, gate_norm: Tensor, z: Tensor, eps: float, dtype: torch.dtype
) -> Tensor:
    """Return rms_norm(read) · gate_norm · silu(z) as dtype[R · T, value_heads · dv].

    Shapes: read float32[R, value_heads, T, dv], contiguous; gate_norm float32[dv]; z
            dtype[R · T, value_heads · dv].
    """
    rows, heads, columns, width = read.shape
    out = torch.empty((rows * columns, heads * width), device=read.device, dtype=dtype)
    _gated_norm[(rows, columns, heads)](
        read, gate_norm, z, out, z.stride(0), width, eps,
        WIDTH=triton.next_power_of_2(width), num_warps=1,
    )  # fmt: skip
    return out


@triton.jit
def _join(
    tails, pool_rows, new, out, tail_row, tail_column, pool_row, new_column, tail, width,
    BLOCK: tl.constexpr,
):  # fmt: skip
    row, column = tl.program_id(0), tl.program_id(1)
    number = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    is_number = number < width
    columns = tl.num_programs(1)
    if column < tail:
        own = tails + tl.load(pool_rows + row * pool_row) * tail_row + column * tail_column
        value = tl.load(own + number, mask=is_number)
    else:
        own = new + (row * (columns - tail) + column - tail) * new_column
        value = tl.load(own + number, mask=is_number)
    tl.store(out + (row * columns + column) * width + number, value, mask=is_number)


@triton.jit
def _filtered(
    inputs, conv, conv_tap, input_column, channels, is_channel,
    TAPS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    total = tl.zeros((WIDTH,), tl.float32)
    for tap in tl.static_range(TAPS):
        wide = tl.load(inputs + tap * input_column + channels, mask=is_channel, other=0.0)
        taken = tl.load(conv + tap * conv_tap + channels, mask=is_channel, other=0.0)
        total += wide.to(tl.float32) * taken
    return total / (1.0 + tl.exp(-total))


@triton.jit
def _convolve(
    inputs, conv, a, b, rate, step_bias, queries, keys, values, decay, beta,
    input_row, input_column, conv_tap, a_row, a_column, b_row, b_column,
    group, key_rows, key_dim, value_dim, query_scale, unit_eps,
    TAPS: tl.constexpr, KEY: tl.constexpr, VALUE: tl.constexpr,
):  # fmt: skip
    row, column, head = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    first = inputs + row * input_row + column * input_column
    number = tl.arange(0, KEY)
    is_key = number < key_dim
    channels = head // group * key_dim + number
    q = _filtered(first, conv, conv_tap, input_column, channels, is_key, TAPS, KEY)
    k = _filtered(first, conv, conv_tap, input_column, channels + key_rows, is_key, TAPS, KEY)
    target = tl.arange(0, VALUE)
    is_value = target < value_dim
    channels = 2 * key_rows + head * value_dim + target
    v = _filtered(first, conv, conv_tap, input_column, channels, is_value, TAPS, VALUE)
    place = (row * tl.num_programs(2) + head) * tl.num_programs(1) + column
    q = q * tl.rsqrt(tl.sum(q * q, 0) + unit_eps) * query_scale
    k = k * tl.rsqrt(tl.sum(k * k, 0) + unit_eps)
    tl.store(queries + place * key_dim + number, q, mask=is_key)
    tl.store(keys + place * key_dim + number, k, mask=is_key)
    tl.store(values + place * value_dim + target, v, mask=is_value)
    step = tl.load(a + row * a_row + column * a_column + head).to(tl.float32)
    step += tl.load(step_bias + head)
    # The library's softplus is the identity from 20 on.
    softened = tl.where(step > 20.0, step, tl.log(1.0 + tl.exp(tl.minimum(step, 20.0))))
    tl.store(decay + place, -tl.load(rate + head) * softened)
    strength = tl.load(b + row * b_row + column * b_column + head).to(tl.float32)
    tl.store(beta + place, 1.0 / (1.0 + tl.exp(-strength)))


@triton.jit
def _gated_norm(read, gate_norm, z, out, z_column, width, eps, WIDTH: tl.constexpr):
    row, column, head = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    number = tl.arange(0, WIDTH)
    is_number = number < width
    place = (row * tl.num_programs(2) + head) * tl.num_programs(1) + column
    x = tl.load(read + place * width + number, mask=is_number, other=0.0)
    x = x * tl.rsqrt(tl.sum(x * x, 0) / width + eps)
    x = x * tl.load(gate_norm + number, mask=is_number, other=0.0)
    flat = row * tl.num_programs(1) + column
    gate = tl.load(z + flat * z_column + head * width + number, mask=is_number, other=0.0)
    gate = gate.to(tl.float32)
    x = x * gate / (1.0 + tl.exp(-gate))
    at = out + (flat * tl.num_programs(2) + head) * width + number
    tl.store(at, x.to(out.dtype.element_ty), mask=is_number)
