"""Attention over pages: one small interface, a kernel on CUDA, plain torch everywhere else."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ninfer.runtime.models.forward_batch import PagedPlan
from ninfer.runtime.models.kernels import has_kernels
from ninfer.runtime.models.kv_pool import PAGE_TOKENS


def attend_pages(queries: Tensor, keys: Tensor, values: Tensor, plan: PagedPlan) -> Tensor:
    """Return what every column attends to, [N, heads, head_dim].

    A kernel reads pages in place, so that unused places of a page table cost nothing; without one
    every place is copied, and tables should be short.

    Math:   softmax(q kᵀ / √head_dim) v over the row's positions from the column's ``first`` to its
            ``last``; query heads share keys in groups of heads / kv_heads.
    Shapes: queries [N, heads, head_dim], N = R · columns; keys, values [slots, kv_heads, head_dim]
            of one layer.
    """
    if has_kernels(queries.device.type):
        from ninfer.runtime.models.paged_attention_kernel import attend_in_place

        return attend_in_place(queries, keys, values, plan)
    return attend_copies(queries, keys, values, plan)


def attend_copies(queries: Tensor, keys: Tensor, values: Tensor, plan: PagedPlan) -> Tensor:
    """Implements: attend_pages; in one product over copies of the rows' pages."""
    rows, columns = plan.last.shape
    offsets = torch.arange(PAGE_TOKENS, device=queries.device)
    slots = (plan.pages.unsqueeze(-1) * PAGE_TOKENS + offsets).view(rows, -1)
    length = slots.shape[1]
    places = torch.arange(length, device=queries.device)
    shape = (rows, length, *keys.shape[1:])
    is_seen = places <= plan.last.unsqueeze(-1)
    if plan.first is not None:
        is_seen = is_seen & (places >= plan.first.unsqueeze(-1))
    out = functional.scaled_dot_product_attention(
        queries.view(rows, columns, *queries.shape[1:]).transpose(1, 2),
        keys.index_select(0, slots.flatten()).view(shape).transpose(1, 2),
        values.index_select(0, slots.flatten()).view(shape).transpose(1, 2),
        attn_mask=is_seen.unsqueeze(1),
        enable_gqa=True,
    )
    return out.transpose(1, 2).reshape(queries.shape)
