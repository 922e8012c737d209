"""The gated delta rule over a few columns of many heads, in Triton.

Implements: ninfer.runtime.models.gated_delta.gated_delta. Match: its torch path, up to the order of
sums. Assumes: at most MOST_COLUMNS columns; all float32.
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

_BLOCK: Final = 32


def delta_in_one_launch(
    queries: Tensor, keys: Tensor, values: Tensor, decay: Tensor, beta: Tensor, state: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return what every column reads, the deltas and the summed log decay; see ``gated_delta``."""
    rows, heads, columns, key_dim = keys.shape
    value_dim = values.shape[-1]
    read = torch.empty((rows, heads, columns, value_dim), device=keys.device)
    deltas, log_decay = torch.empty_like(read), torch.empty_like(read[..., 0])
    held = max(16, triton.next_power_of_2(columns))
    grid = (rows, heads, triton.cdiv(value_dim, _BLOCK))
    _delta[grid](
        queries, keys, values, decay, beta, state, read, deltas, log_decay,
        *queries.stride()[:3], *keys.stride()[:3], *values.stride()[:3],
        *decay.stride(), *beta.stride(), *state.stride()[:3],
        columns, key_dim, value_dim,
        HELD=held, KEY=max(16, triton.next_power_of_2(key_dim)), BLOCK=_BLOCK, num_warps=4,
    )  # fmt: skip
    return read, deltas, log_decay


@triton.jit
def _delta(
    queries, keys, values, decay, beta, state, read, deltas, log_decay,
    query_row, query_head, query_column, key_row, key_head, key_column,
    value_row, value_head, value_column, decay_row, decay_head, decay_column,
    beta_row, beta_head, beta_column, state_row, state_head, state_key,
    columns, key_dim, value_dim,
    HELD: tl.constexpr, KEY: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, head, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    place = tl.arange(0, HELD)
    number = tl.arange(0, KEY)
    target = part * BLOCK + tl.arange(0, BLOCK)
    is_column = place < columns
    is_key = is_column[:, None] & (number < key_dim)[None, :]
    is_value = is_column[:, None] & (target < value_dim)[None, :]
    own = keys + row * key_row + head * key_head
    k = tl.load(own + place[:, None] * key_column + number[None, :], mask=is_key, other=0.0)
    own = queries + row * query_row + head * query_head
    q = tl.load(own + place[:, None] * query_column + number[None, :], mask=is_key, other=0.0)
    own = values + row * value_row + head * value_head
    v = tl.load(own + place[:, None] * value_column + target[None, :], mask=is_value, other=0.0)
    own = decay + row * decay_row + head * decay_head
    summed = tl.cumsum(tl.load(own + place * decay_column, mask=is_column, other=0.0), 0)
    own = beta + row * beta_row + head * beta_head
    weight = tl.load(own + place * beta_column, mask=is_column, other=0.0)
    own = state + row * state_row + head * state_head
    s = tl.load(
        own + number[:, None] * state_key + target[None, :],
        mask=(number < key_dim)[:, None] & (target < value_dim)[None, :], other=0.0,
    )  # fmt: skip
    start = tl.exp(summed)[:, None]
    is_before = place[:, None] > place[None, :]
    is_seen = place[:, None] >= place[None, :]
    # A later column would need a positive exponent; it is cleared before the exponential.
    between = tl.exp(tl.where(is_seen, summed[:, None] - summed[None, :], -1.0e30))
    likeness = tl.dot(k, tl.trans(k), input_precision="ieee")
    system = tl.where(is_before, weight[:, None] * between * likeness, 0.0)
    wanted = weight[:, None] * (v - start * tl.dot(k, s, input_precision="ieee"))
    found = tl.zeros((HELD, BLOCK), tl.float32)
    for column in range(columns):
        is_now = place == column
        factors = tl.sum(tl.where(is_now[:, None], system, 0.0), 0)
        known = tl.sum(factors[:, None] * found, 0)
        found = tl.where(is_now[:, None], wanted - known[None, :], found)
    mixed = between * tl.dot(q, tl.trans(k), input_precision="ieee")
    mixed = tl.where(is_seen, mixed, 0.0)
    told = start * tl.dot(q, s, input_precision="ieee")
    told += tl.dot(mixed, found, input_precision="ieee")
    every = (row * tl.num_programs(1) + head) * columns + place
    at = every[:, None] * value_dim + target[None, :]
    tl.store(read + at, told, mask=is_value)
    tl.store(deltas + at, found, mask=is_value)
    if part == 0:
        tl.store(log_decay + every, summed, mask=is_column)
