"""The gated delta rule over a few columns, read from the states of a pool, in Triton.

Implements: ninfer.runtime.models.gated_delta.gated_delta. Match: it, up to the order of sums. A
program keeps some columns of one head's state in registers and steps through the round's columns:
with so few of them that is quicker than solving for all at once.
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

from ninfer.runtime.models.gated_delta import DeltaRecords

_BLOCK: Final = 8


def gated_delta_rows(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    decay: Tensor,
    beta: Tensor,
    states: Tensor,
    pool_rows: Tensor,
) -> tuple[Tensor, DeltaRecords]:
    """Return what every column reads, and the records; see ``gated_delta``.

    Shapes: all float32 and contiguous but pool_rows int64[R]; states [rows, H, dk, dv] of one
            layer, of which row r reads ``pool_rows[r]``.
    """
    rows, heads, columns, key_dim = keys.shape
    value_dim = values.shape[-1]
    read = torch.empty((rows, heads, columns, value_dim), device=keys.device)
    deltas, log_decay = torch.empty_like(read), torch.empty_like(decay)
    grid = (rows, heads, triton.cdiv(value_dim, _BLOCK))
    _step_through[grid](
        queries, keys, values, decay, beta, states, pool_rows, read, deltas, log_decay,
        *states.stride()[:3], pool_rows.stride(0), columns, key_dim, value_dim,
        KEY=triton.next_power_of_2(key_dim), BLOCK=_BLOCK, num_warps=1,
    )  # fmt: skip
    return read, DeltaRecords(keys, deltas, log_decay)


@triton.jit
def _step_through(
    queries, keys, values, decay, beta, states, pool_rows, read, deltas, log_decay,
    state_row, state_head, state_key, pool_row, columns, key_dim, value_dim,
    KEY: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, head, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    number = tl.arange(0, KEY)
    is_key = number < key_dim
    target = part * BLOCK + tl.arange(0, BLOCK)
    is_value = target < value_dim
    own = states + tl.load(pool_rows + row * pool_row) * state_row + head * state_head
    state = tl.load(
        own + number[:, None] * state_key + target[None, :],
        mask=is_key[:, None] & is_value[None, :], other=0.0,
    )  # fmt: skip
    total = 0.0
    first = (row * tl.num_programs(1) + head) * columns
    for place in range(first, first + columns):
        step = tl.load(decay + place)
        total += step
        k = tl.load(keys + place * key_dim + number, mask=is_key, other=0.0)
        q = tl.load(queries + place * key_dim + number, mask=is_key, other=0.0)
        v = tl.load(values + place * value_dim + target, mask=is_value, other=0.0)
        state *= tl.exp(step)
        delta = tl.load(beta + place) * (v - tl.sum(state * k[:, None], 0))
        state += k[:, None] * delta[None, :]
        tl.store(read + place * value_dim + target, tl.sum(state * q[:, None], 0), mask=is_value)
        tl.store(deltas + place * value_dim + target, delta, mask=is_value)
        if part == 0:
            tl.store(log_decay + place, total)
