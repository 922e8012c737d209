"""Attention that reads keys and values from their pages, in Triton.

Implements: ninfer.runtime.models.paged_attention.attend_pages. Match: attend_copies. Assumes: a
page is a whole number of blocks, a row's page numbers lie side by side, and every column sees at
least one position. Blocks that no column of a row sees the first position of are not read.
"""

# Triton reads annotations of a kernel's parameters as its own, and constants are spelled like such.
# ruff: noqa: ANN001, ANN202, N803
# mypy: disable-error-code="no-untyped-def,untyped-decorator"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ninfer.runtime.models.forward_batch import PagedPlan
from ninfer.runtime.models.kv_pool import PAGE_TOKENS

PROGRAMS = 256
"""Programs worth starting for one layer: two for each of some 130 processors."""
MOST_SPLITS = 16


def attend_in_place(queries: Tensor, keys: Tensor, values: Tensor, plan: PagedPlan) -> Tensor:
    """Implements: attend_pages; a row's positions are split between programs, then joined."""
    rows, columns = plan.last.shape
    _, heads, head_dim = queries.shape
    kv_heads = keys.shape[1]
    group = heads // kv_heads
    splits = max(1, min(MOST_SPLITS, PROGRAMS // (rows * kv_heads)))
    held = max(16, triton.next_power_of_2(columns * group))
    width = max(16, triton.next_power_of_2(head_dim))
    is_wide = queries.dtype == torch.float32
    block = 16 if is_wide and width > 128 else 32
    parts = queries.new_empty((rows, kv_heads, splits, held, width), dtype=torch.float32)
    marks = queries.new_empty((2, rows, kv_heads, splits, held), dtype=torch.float32)
    out = queries.new_empty((len(queries), heads, head_dim))
    first = plan.last if plan.first is None else plan.first
    shape = {
        "COLUMNS": columns,
        "GROUP": group,
        "HEAD_DIM": head_dim,
        "HELD": held,
        "WIDTH": width,
        "SPLITS": splits,
    }
    _attend_split[(rows, kv_heads, splits)](
        queries, keys, values, plan.pages, plan.last, first, parts, marks,
        queries.stride(0), queries.stride(1), keys.stride(0), keys.stride(1),
        values.stride(0), values.stride(1), plan.pages.stride(0), *plan.last.stride(),
        *first.stride(), head_dim**-0.5, **shape,
        WINDOWED=plan.first is not None, BLOCK=block, PAGE=PAGE_TOKENS,
        PRECISION="ieee" if is_wide else "tf32",
        num_warps=4,
    )  # fmt: skip
    _join_splits[(rows, kv_heads, columns * group)](
        parts, marks, out, out.stride(0), out.stride(1), **shape, num_warps=1
    )
    return out


@triton.jit
def _attend_split(
    queries, keys, values, pages, last, first, parts, marks,
    query_column, query_head, key_slot, key_head, value_slot, value_head, page_row,
    last_row, last_column, first_row, first_column, scale,
    COLUMNS: tl.constexpr, GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, HELD: tl.constexpr,
    WIDTH: tl.constexpr, SPLITS: tl.constexpr, WINDOWED: tl.constexpr, BLOCK: tl.constexpr,
    PAGE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    row, head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    place = tl.arange(0, HELD)
    is_held = place < COLUMNS * GROUP
    column = place // GROUP
    bound = tl.load(last + row * last_row + column * last_column, mask=is_held, other=-1).to(
        tl.int32
    )
    number = tl.arange(0, WIDTH)
    is_number = number < HEAD_DIM
    own = (row * COLUMNS + column) * query_column + (head * GROUP + place % GROUP) * query_head
    asked = tl.load(
        queries + own[:, None] + number[None, :],
        mask=is_held[:, None] & is_number[None, :], other=0.0,
    )  # fmt: skip
    blocks = (tl.max(bound, 0) + BLOCK) // BLOCK
    skipped = 0
    if WINDOWED:
        opening = tl.load(
            first + row * first_row + column * first_column, mask=is_held, other=2147483647
        ).to(tl.int32)
        skipped = tl.min(opening, 0) // BLOCK
    share = (blocks - skipped + SPLITS - 1) // SPLITS
    best = tl.full((HELD,), -1.0e30, tl.float32)
    mass = tl.zeros((HELD,), tl.float32)
    total = tl.zeros((HELD, WIDTH), tl.float32)
    begin = skipped + split * share
    for step in range(begin, min(begin + share, blocks)):
        start = step * BLOCK
        page = tl.load(pages + row * page_row + start // PAGE)
        offset = tl.arange(0, BLOCK)
        slot = page * PAGE + start % PAGE + offset
        known = tl.load(
            keys + slot[None, :] * key_slot + head * key_head + number[:, None],
            mask=is_number[:, None], other=0.0,
        )  # fmt: skip
        scores = tl.dot(asked, known, input_precision=PRECISION) * scale
        is_seen = (start + offset)[None, :] <= bound[:, None]
        if WINDOWED:
            is_seen = is_seen & ((start + offset)[None, :] >= opening[:, None])
        scores = tl.where(is_seen, scores, -1.0e30)
        higher = tl.maximum(best, tl.max(scores, 1))
        weights = tl.where(is_seen, tl.exp(scores - higher[:, None]), 0.0)
        kept = tl.exp(best - higher)
        mass = mass * kept + tl.sum(weights, 1)
        told = tl.load(
            values + slot[:, None] * value_slot + head * value_head + number[None, :],
            mask=is_number[None, :], other=0.0,
        )  # fmt: skip
        gained = tl.dot(weights.to(told.dtype), told, input_precision=PRECISION)
        total = total * kept[:, None] + gained
        best = higher
    part = (row * tl.num_programs(1) + head) * SPLITS + split
    tl.store(parts + (part * HELD + place[:, None]) * WIDTH + number[None, :], total)
    tl.store(marks + part * HELD + place, best)
    every = tl.num_programs(0) * tl.num_programs(1) * SPLITS * HELD
    tl.store(marks + every + part * HELD + place, mass)


@triton.jit
def _join_splits(
    parts, marks, out, out_column, out_head,
    COLUMNS: tl.constexpr, GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, HELD: tl.constexpr,
    WIDTH: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    row, head, place = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    number = tl.arange(0, WIDTH)
    first = (row * tl.num_programs(1) + head) * SPLITS
    every = tl.num_programs(0) * tl.num_programs(1) * SPLITS * HELD
    highest = -1.0e30
    for split in range(SPLITS):
        highest = tl.maximum(highest, tl.load(marks + (first + split) * HELD + place))
    mass = 0.0
    total = tl.zeros((WIDTH,), tl.float32)
    for split in range(SPLITS):
        at = (first + split) * HELD + place
        weight = tl.exp(tl.load(marks + at) - highest)
        mass += weight * tl.load(marks + every + at)
        total += weight * tl.load(parts + at * WIDTH + number)
    column = row * COLUMNS + place // GROUP
    target = out + column * out_column + (head * GROUP + place % GROUP) * out_head + number
    tl.store(target, (total / mass).to(out.dtype.element_ty), mask=number < HEAD_DIM)
