"""Taking accepted columns into recurrent states, in Triton: states are read and written once.

Implements: ninfer.runtime.models.gated_delta.fold, in the pool itself. Match: its torch path, up to
the order of sums. Assumes: no pool row twice; everything but pool_rows contiguous.
"""

# Triton reads annotations of a kernel's parameters as its own, and constants are spelled like such.
# ruff: noqa: ANN001, ANN202, N803
# mypy: disable-error-code="no-untyped-def,untyped-decorator"

from __future__ import annotations

from typing import Final

import triton
import triton.language as tl
from torch import Tensor

from ninfer.runtime.models.gated_delta import DeltaRecords

_BLOCK: Final = 32


def fold_in_place(states: Tensor, pool_rows: Tensor, records: DeltaRecords, counts: Tensor) -> None:
    """Take the first ``counts`` int64[R] columns of every row of every layer into the states.

    Shapes:  states float32[layers, rows, H, dk, dv]; records of layers · R rows, layer by layer.
    Effects: a row with 0 keeps its states bit for bit.
    """
    layers, _, heads, key_dim, value_dim = states.shape
    columns = records.keys.shape[2]
    grid = (layers * len(pool_rows), heads, triton.cdiv(value_dim, _BLOCK))
    _fold[grid](
        states, pool_rows, records.keys, records.deltas, records.log_decay, counts,
        *states.stride()[:4], pool_rows.stride(0), len(pool_rows), columns, key_dim, value_dim,
        KEY=triton.next_power_of_2(key_dim), BLOCK=_BLOCK, num_warps=4,
    )  # fmt: skip


@triton.jit
def _fold(
    states, pool_rows, keys, deltas, log_decay, counts,
    state_layer, state_row, state_head, state_key, pool_row,
    rows, columns, key_dim, value_dim,
    KEY: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    which, head, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    row = which % rows
    count = tl.load(counts + row).to(tl.int32)
    if count > 0:
        number = tl.arange(0, KEY)
        is_key = number < key_dim
        target = part * BLOCK + tl.arange(0, BLOCK)
        is_value = target < value_dim
        own = (
            states + (which // rows) * state_layer + tl.load(pool_rows + row * pool_row) * state_row
        )
        at = own + head * state_head + number[:, None] * state_key + target[None, :]
        is_state = is_key[:, None] & is_value[None, :]
        first = (which * tl.num_programs(1) + head) * columns
        reached = tl.load(log_decay + first + count - 1)
        state = tl.load(at, mask=is_state, other=0.0) * tl.exp(reached)
        for place in range(first, first + count):
            weight = tl.exp(reached - tl.load(log_decay + place))
            k = tl.load(keys + place * key_dim + number, mask=is_key, other=0.0)
            d = tl.load(deltas + place * value_dim + target, mask=is_value, other=0.0)
            state += (k * weight)[:, None] * d[None, :]
        tl.store(at, state, mask=is_state)
