"""The kernel that reads pages in place attends as the product over copies of them does."""

from __future__ import annotations

import sys

import pytest
import torch

from ninfer.runtime.models.forward_batch import PagedPlan
from ninfer.runtime.models.paged_attention import attend_copies

CASES = [
    (3, 4, 4, 2, 24, torch.float32),
    (2, 1, 8, 2, 64, torch.float32),
    (1, 16, 3, 3, 16, torch.float32),
    (8, 8, 8, 2, 256, torch.bfloat16),
    (5, 16, 16, 2, 128, torch.bfloat16),
    (1, 1, 8, 8, 256, torch.float32),
]
"""Rows, columns, heads, key heads, width of a head, number format."""
TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 1e-2}


def difference(
    device: str,
    rows: int,
    columns: int,
    heads: int,
    kv_heads: int,
    width: int,
    dtype: torch.dtype,
    *,
    sees_block: bool = False,
) -> float:
    """Return how far kernel and product are apart on random pages, and check its edges."""
    from ninfer.runtime.models.paged_attention_kernel import attend_in_place

    generator = torch.Generator().manual_seed(rows * 100 + columns)
    pages = torch.stack([torch.randperm(20, generator=generator)[:6] for _ in range(rows)])
    starts = torch.randint(0, 300, (rows, 1), generator=generator)
    starts[0] = 0
    last = (starts + torch.arange(columns)).to(device)
    if sees_block:
        last = last[:, -1:].expand_as(last)
    numbers = [
        torch.randn(shape, generator=generator).to(device, dtype)
        for shape in [
            (rows * columns, heads + 3, width),
            (20 * 64, kv_heads, width),
            (20 * 64, kv_heads, width),
        ]
    ]
    wide, keys, values = numbers
    plan = PagedPlan(pages.to(device), last)
    found = attend_in_place(wide[:, :heads], keys, values, plan)
    expected = attend_copies(wide[:, :heads].float(), keys.float(), values.float(), plan)
    assert found.shape == expected.shape
    return float((found.float() - expected).abs().max())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("sees_block", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_the_kernel_attends_as_copies_do(
    case: tuple[int, int, int, int, int, torch.dtype], sees_block: bool
) -> None:
    assert difference("cuda", *case, sees_block=sees_block) < TOLERANCE[case[-1]]


def test_the_interpreted_kernel_attends_as_copies_do() -> None:
    pytest.importorskip("triton")
    from support.interpreted import interpreted

    differences = interpreted(__file__)
    assert len(differences) == 2
    assert max(differences) < TOLERANCE[torch.float32]


if __name__ == "__main__":
    for chosen, block in ((CASES[0], True), (CASES[1], False)):
        sys.stdout.write(f"{difference('cpu', *chosen, sees_block=block)}\n")
