"""The mask service of one round: compact rows to the matchers of their requests.

Implements: contract.MaskProvider.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import cast

from ninfer.contract import InvalidMask, Lookahead, TokenMatcher
from ninfer.runtime.request import EngineRequest
from ninfer.text._matcher import Matcher, lookahead_batch

LookaheadBatch = Callable[
    [Sequence[TokenMatcher | None], Sequence[Sequence[int]], memoryview, int],
    Sequence[Lookahead | None],
]
"""All rows of a round in one call: matchers, drafts, masks int32[B, P, W], threads."""


def lookahead_rows(
    matchers: Sequence[TokenMatcher | None],
    drafts: Sequence[Sequence[int]],
    masks: memoryview,
    threads: int,
) -> Sequence[Lookahead | None]:
    """Fill row by row through the matchers' own lookahead; works for every TokenMatcher."""
    _, positions, words = _shape(masks)
    flat = masks.cast("B")
    row_bytes = positions * words * masks.itemsize
    reports: list[Lookahead | None] = []
    for row, (matcher, proposal) in enumerate(zip(matchers, drafts, strict=True)):
        if matcher is None:
            reports.append(None)
            continue
        view = flat[row * row_bytes : (row + 1) * row_bytes].cast("i", (positions, words))
        reports.append(matcher.lookahead(proposal, view))
    return reports


def lookahead_native(
    matchers: Sequence[TokenMatcher | None],
    drafts: Sequence[Sequence[int]],
    masks: memoryview,
    threads: int,
) -> Sequence[Lookahead | None]:
    """Fill every row in one native call; each matcher must be the native one."""
    return lookahead_batch(cast("Sequence[Matcher | None]", matchers), drafts, masks, threads)


class SessionMasks:
    """Borrows the sessions of one round; gone when the program call returns."""

    __slots__ = ("_lookahead", "_matchers", "_requests", "_threads")

    def __init__(
        self, requests: Sequence[EngineRequest], lookahead: LookaheadBatch, threads: int
    ) -> None:
        self._requests = requests
        self._matchers = [request.session.matcher for request in requests]
        self._lookahead = lookahead
        self._threads = threads

    @property
    def has_constraint(self) -> bool:
        """Return whether any row has a mask at all."""
        return any(matcher is not None for matcher in self._matchers)

    def is_constrained(self, row: int) -> bool:
        """Return whether a row has a mask."""
        return self._matchers[row] is not None

    def fill(
        self, drafts: Sequence[Sequence[int]], masks: memoryview
    ) -> Sequence[Lookahead | None]:
        """Write the allowed sets of every constrained row."""
        started = time.perf_counter()
        if len(self._requests) == 1 and not drafts[0]:
            cached = self._requests[0].initial_mask
            if cached is not None:
                return [_copy_initial(cached, masks)]
        reports = self._lookahead(self._matchers, drafts, masks, self._threads)
        constrained = [r for r, report in zip(self._requests, reports, strict=True) if report]
        share = (time.perf_counter() - started) / max(len(constrained), 1)
        for request, report in zip(self._requests, reports, strict=True):
            if report is not None:
                request.masks.positions += report.filled
                request.masks.seconds += share
        return reports

    def uploaded(self, row: int, byte_count: int) -> None:
        """Count mask bytes of one row that went to the device."""
        self._requests[row].masks.upload_bytes += byte_count


def _copy_initial(cached: bytes, masks: memoryview) -> Lookahead:
    masks.cast("B")[: len(cached)] = cached
    return Lookahead(positions=_shape(masks)[1], reachable=1, dead_ends=0, filled=0)


def _shape(masks: memoryview) -> tuple[int, int, int]:
    if masks.ndim != 3 or masks.shape is None:
        raise InvalidMask(f"the mask buffer has {masks.ndim} axes, not rows, positions, words")
    rows, positions, words = masks.shape
    return rows, positions, words
