"""Which page of a KV pool is free; prefers runs, so that a row can be read as a view."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from ninfer.contract import IntegrityError


class _Run(NamedTuple):
    begin: int
    end: int

    @property
    def pages(self) -> int:
        return self.end - self.begin


class PageAllocator:
    """A set of free pages out of ``capacity``."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._is_free = [True] * capacity
        self.free_pages = capacity

    def has_run(self, pages: int) -> bool:
        """Return whether so many free pages follow each other."""
        return any(run.pages >= pages for run in self._runs())

    def is_free(self, page: int) -> bool:
        """Return whether a page exists and is free."""
        return page < self.capacity and self._is_free[page]

    def take(self, pages: int) -> list[int]:
        """Return pages for a new sequence, as one run where there is one.

        Effects: a run that some page's owner may still grow into is entered in its middle.
        Raises:  IntegrityError — fewer pages are free.
        """
        self._require(pages)
        longest = max(self._runs(), key=lambda run: run.pages, default=_Run(0, 0))
        if longest.pages < pages:
            return self._claim(self._scattered(pages))
        begin = longest.begin
        if begin > 0:
            begin += min(longest.pages // 2, longest.pages - pages)
        return self._claim(range(begin, begin + pages))

    def extend(self, owned: Sequence[int], pages: int) -> list[int]:
        """Return more pages for a sequence, those right after its last one first.

        Raises: IntegrityError — fewer pages are free.
        """
        self._require(pages)
        following = range(owned[-1] + 1, owned[-1] + 1 + pages)
        adjacent = []
        for page in following:
            if not self.is_free(page):
                break
            adjacent.append(page)
        claimed = self._claim(adjacent)
        return claimed + self._claim(self._scattered(pages - len(adjacent)))

    def give_back(self, pages: Iterable[int]) -> None:
        """Make pages free again.

        Raises: IntegrityError — one of them is free already.
        """
        for page in pages:
            if self._is_free[page]:
                raise IntegrityError(f"page {page}: given back twice")
            self._is_free[page] = True
            self.free_pages += 1

    def _require(self, pages: int) -> None:
        if pages > self.free_pages:
            raise IntegrityError(f"pages: {pages} wanted, {self.free_pages} free")

    def _runs(self) -> list[_Run]:
        runs = []
        begin = 0
        for free, group in groupby(self._is_free):
            end = begin + sum(1 for _ in group)
            if free:
                runs.append(_Run(begin, end))
            begin = end
        return runs

    def _scattered(self, pages: int) -> list[int]:
        by_length = sorted(self._runs(), key=lambda run: -run.pages)
        return [page for run in by_length for page in range(run.begin, run.end)][:pages]

    def _claim(self, pages: Iterable[int]) -> list[int]:
        claimed = list(pages)
        for page in claimed:
            self._is_free[page] = False
        self.free_pages -= len(claimed)
        return claimed
