"""What a measured round goes through: masks with a clock, marks on the device, drafts by heart."""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch

from ninfer.contract import Lookahead
from ninfer.runtime.models.drafters import Drafter, PagedProposal, Proposal
from ninfer.runtime.models.kv_pool import KvPool
from ninfer.runtime.program.round_unit import RoundUnit
from ninfer.text import Matcher, lookahead_batch


class MatcherMasks:
    """Implements contract.MaskProvider over one matcher a row; notes how long it took."""

    def __init__(self, matchers: Sequence[Matcher], threads: int) -> None:
        self._matchers = matchers
        self._threads = threads
        self.seconds: list[float] = []
        self.filled: list[int] = []

    def is_constrained(self, row: int) -> bool:
        """Return whether a row has a mask."""
        return True

    def fill(
        self, drafts: Sequence[Sequence[int]], masks: memoryview
    ) -> Sequence[Lookahead | None]:
        """Write the allowed sets of every row."""
        started = time.perf_counter()
        found = lookahead_batch(self._matchers, drafts, masks, self._threads)
        self.seconds.append(time.perf_counter() - started)
        self.filled.append(sum(report.filled for report in found if report is not None))
        return found

    def uploaded(self, row: int, byte_count: int) -> None:
        """Count nothing."""


class TimedUnit:
    """Implements: RoundUnit; notes how long the device waited between the two stages."""

    def __init__(self, inner: RoundUnit, on_device: bool) -> None:
        self._inner = inner
        self._marks = [torch.cuda.Event(enable_timing=True) for _ in range(4)] if on_device else []

    def _mark(self, place: int) -> None:
        if self._marks:
            self._marks[place].record()

    def forward(self) -> None:
        """Implements: RoundUnit.forward."""
        self._mark(0)
        self._inner.forward()
        self._mark(1)

    def finish(self) -> None:
        """Implements: RoundUnit.finish."""
        self._mark(2)
        self._inner.finish()
        self._mark(3)

    def spans(self) -> tuple[float, float, float]:
        """Return the milliseconds of Forward, of the time between, and of Finish."""
        if not self._marks:
            return 0.0, 0.0, 0.0
        a, b, c, d = self._marks
        d.synchronize()
        return a.elapsed_time(b), b.elapsed_time(c), c.elapsed_time(d)


class OracleDrafter:
    """Implements: Drafter; costs what the inner one costs, and can be told what to propose."""

    def __init__(self, inner: Drafter, rows: int, drafts: int, device: torch.device) -> None:
        self._inner = inner
        self._told = torch.full((rows, drafts), -1, dtype=torch.int64, device=device)

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def tell(self, drafts: Sequence[Sequence[int]] | None) -> None:
        """Propose these drafts from now on, or the drafter's own."""
        if drafts is None:
            self._told.fill_(-1)
        else:
            self._told.copy_(torch.tensor(drafts))

    def propose_paged(self, rows: PagedProposal, pool: KvPool) -> Proposal:
        """Implements: Drafter.propose_paged."""
        proposal = self._inner.propose_paged(rows, pool)
        told = self._told[: len(rows.starts)]
        return proposal._replace(tokens=torch.where(told < 0, proposal.tokens, told))
