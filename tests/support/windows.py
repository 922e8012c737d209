"""Attention through windows by its formula, over dense masks in float64; shares no product code."""

from __future__ import annotations

import torch
from torch import Tensor


def near(first: int, columns: int, length: int, window: int | None) -> Tensor:
    """Return which of ``length`` keys the columns from ``first`` on see, bool[columns, length]."""
    seen = torch.ones(columns, length, dtype=torch.bool)
    for column in range(columns):
        for key in range(length):
            if window is not None and abs(first + column - key) >= window:
                seen[column, key] = False
    return seen


def attended(q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
    """Return softmax attention float64[n, heads, head_dim] of grouped heads.

    Shapes: q [n, heads, head_dim]; k, v [m, kv_heads, head_dim]; seen bool[n, m].
    """
    q, k, v = q.double(), k.double(), v.double()
    out = torch.empty_like(q)
    for head in range(q.shape[1]):
        group = head * k.shape[1] // q.shape[1]
        scores = q[:, head] @ k[:, group].T / q.shape[2] ** 0.5
        out[:, head] = scores.masked_fill(~seen, -torch.inf).softmax(-1) @ v[:, group]
    return out
