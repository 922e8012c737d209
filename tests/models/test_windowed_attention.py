"""Columns see the keys less than a window away, the same on every route that reads them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from ninfer.runtime.models.attention import attend
from ninfer.runtime.models.forward_batch import RowInput, forward_batch
from ninfer.runtime.models.kv_pool import PAGE_TOKENS, KvPool, SlotMap
from ninfer.runtime.models.paged_attention import attend_copies
from ninfer.runtime.models.paged_batch import paged_batch
from ninfer.runtime.models.window import seeing
from support.windows import attended, near

HEADS, KV_HEADS, WIDTH = 4, 2, 24
PAGES = 5
TABLES = ((2, 3, 4, 5, 6), (17, 8, 14, 9, 11), (0, 7, 1, 13, 10))
STARTS = (150, 301, 0)
WINDOWS = [1, 3, 7, 8, 50, 64, 130, 309, 10_000, None]
COLUMNS = 8
TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 1e-2}


class Case:
    """Rows of one shape over random keys: contiguous, scattered, and without any context."""

    def __init__(self, device: str, dtype: torch.dtype = torch.float32) -> None:
        generator = torch.Generator().manual_seed(4)
        self.device = torch.device(device)
        self.pool = KvPool(1, 18, KV_HEADS, WIDTH, device=self.device, dtype=dtype)
        for part in (self.pool.keys, self.pool.values):
            part.copy_(torch.randn(part.shape, generator=generator))
        shape = (len(STARTS) * COLUMNS, HEADS, WIDTH)
        self.queries = torch.randn(shape, generator=generator).to(self.device, dtype)
        self.maps = [SlotMap(table) for table in TABLES]

    def rows(self, columns: int = COLUMNS) -> list[RowInput]:
        return [
            RowInput([0] * columns, start, slots)
            for start, slots in zip(STARTS, self.maps, strict=True)
        ]

    def expected(self, window: int | None, columns: int = COLUMNS) -> Tensor:
        queries, rows = self.queries[: len(STARTS) * columns].cpu(), []
        for row, (start, slots) in enumerate(zip(STARTS, self.maps, strict=True)):
            own = slots.slots(0, start + columns)
            keys, values = (p[0].cpu()[own] for p in (self.pool.keys, self.pool.values))
            asked = queries[row * columns : (row + 1) * columns]
            rows.append(attended(asked, keys, values, near(start, columns, len(own), window)))
        return torch.cat(rows)

    def in_rows(self, window: int | None, columns: int = COLUMNS) -> Tensor:
        """Attend row by row."""
        batch = seeing(forward_batch(self.rows(columns), self.pool), window)
        queries = self.queries[: len(STARTS) * columns]
        found = attend(queries, self.pool.keys[0], self.pool.values[0], batch)
        return found.view(queries.shape).cpu()

    def in_pages(self, window: int | None, *, by_kernel: bool) -> Tensor:
        """Attend over page tables, each row's last column standing for one more."""
        from ninfer.runtime.models.paged_attention_kernel import attend_in_place

        places = torch.arange(COLUMNS, device=self.device)
        starts = torch.tensor(STARTS, device=self.device)[:, None]
        last = (starts + COLUMNS - 1).expand(-1, COLUMNS)
        pages = torch.tensor(TABLES, device=self.device)
        positions = starts + places
        plan = seeing(paged_batch(positions, positions, pages, last=last), window).paged
        assert plan is not None
        chosen = attend_in_place if by_kernel else attend_copies
        return chosen(self.queries, self.pool.keys[0], self.pool.values[0], plan).cpu()

    def spoil(self, window: int, grain: int) -> None:
        """Make every key and value a NaN that lies in no piece of ``grain`` any column sees."""
        for start, slots in zip(STARTS, self.maps, strict=True):
            end = max(0, start - window + 1) // grain * grain
            gone = slots.slots(0, end).to(self.device)
            self.pool.keys[0, gone] = torch.nan
            self.pool.values[0, gone] = torch.nan


def difference(found: Tensor, expected: Tensor) -> float:
    assert bool(found.isfinite().all())
    return float((found.double() - expected).abs().max())


@pytest.fixture(scope="module")
def case() -> Case:
    return Case("cpu")


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("columns", [1, COLUMNS])
def test_rows_attend_within_their_window(case: Case, window: int | None, columns: int) -> None:
    found = case.in_rows(window, columns)
    assert difference(found, case.expected(window, columns)) < TOLERANCE[torch.float32]


@pytest.mark.parametrize("window", WINDOWS)
def test_copies_of_pages_are_attended_to_within_a_window(case: Case, window: int | None) -> None:
    found = case.in_pages(window, by_kernel=False)
    assert difference(found, case.expected(window)) < TOLERANCE[torch.float32]


def test_a_window_changes_what_is_attended_to(case: Case) -> None:
    results = [case.in_rows(window) for window in (1, 7, 50, 309)]
    assert all(difference(a, b) > 0.01 for a, b in pairwise(results))
    assert torch.equal(case.in_rows(309), case.in_rows(None))


@pytest.mark.parametrize("window", [1, 50, 130])
def test_rows_read_nothing_before_the_window(window: int) -> None:
    case = Case("cpu")
    expected = case.expected(window)
    case.spoil(window, 1)
    assert difference(case.in_rows(window), expected) < TOLERANCE[torch.float32]


def test_a_window_over_every_place_of_the_tables_costs_nothing() -> None:
    positions = torch.arange(4)[None]
    batch = paged_batch(positions, positions, torch.tensor([[0, 1]]))
    assert seeing(batch, 2 * PAGE_TOKENS) is batch
    windowed = seeing(batch, 2 * PAGE_TOKENS - 1).paged
    assert windowed is not None
    assert windowed.first is not None


def kernel_differences(
    device: str, dtype: torch.dtype, windows: Sequence[int | None]
) -> list[float]:
    """Return how far the kernel is from the formula, with all that it must skip spoiled."""
    found = []
    for window in windows:
        case = Case(device, dtype)
        expected = case.expected(window)
        if window is not None:
            # Blocks are skipped whole, those of the shortest one and the longest alike.
            case.spoil(window, 32)
        found.append(difference(case.in_pages(window, by_kernel=True), expected))
    return found


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("window", WINDOWS)
def test_the_kernel_attends_within_a_window(window: int | None, dtype: torch.dtype) -> None:
    (found,) = kernel_differences("cuda", dtype, [window])
    assert found < TOLERANCE[dtype]


def test_the_interpreted_kernel_attends_within_a_window() -> None:
    pytest.importorskip("triton")
    from support.interpreted import interpreted

    (found,) = interpreted(__file__)
    assert found < TOLERANCE[torch.float32]


if __name__ == "__main__":
    for away in kernel_differences("cpu", torch.float32, [7]):
        sys.stdout.write(f"{away}\n")
