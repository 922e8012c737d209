"""One round's outcome on its way from Program to publication.

Order: Program produces a PendingBatch → every row is previewed → Program commits the same prefixes
→ sessions confirm → deltas are published. Source: specification 6.2 and 10.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NewType

SequenceId = NewType("SequenceId", int)
"""A program's own handle of one resident sequence; neither lane, nor KV row, nor batch row."""


class RoundKind(Enum):
    """What made the tokens of a batch."""

    PREFILL = "prefill"
    DECODE = "decode"
    CONTROL = "control"


@dataclass(frozen=True, slots=True)
class SpeculationCounts:
    """What one row's round proposed; ``extent`` drafts were verified, ``accepted`` survived."""

    extent: int = 0
    accepted: int = 0


@dataclass(frozen=True, slots=True)
class PendingRow:
    """Provisional tokens of one row; a row that failed produced none and holds the reason."""

    sequence: SequenceId
    tokens: tuple[int, ...]
    failed: bool = False
    speculation: SpeculationCounts = SpeculationCounts()


@dataclass(frozen=True, slots=True, eq=False)
class PendingBatch:
    """A round's provisional outcome with frozen membership; consumed whole, exactly once."""

    kind: RoundKind
    rows: tuple[PendingRow, ...]
    device_wait_seconds: float = 0.0
    draft_wait_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class CommitDecision:
    """What the engine decided about one row.

    Math: not cancelled and not failed ⇒ 1 ≤ accepted ≤ produced; nonterminal ⇒ accepted = produced;
          terminal ⇒ any nonempty prefix; cancelled or failed ⇒ 0.
    """

    accepted_tokens: int
    terminal: bool = False
    cancelled: bool = False
    failed: bool = False
    prefix_execution_split_after: int | None = None

    def is_valid_for(self, produced: int) -> bool:
        """Return whether the decision obeys the row rules for ``produced`` tokens."""
        if self.cancelled or self.failed:
            return self.accepted_tokens == 0
        if self.terminal:
            return 1 <= self.accepted_tokens <= produced
        return produced >= 1 and self.accepted_tokens == produced


class RowDisposition(Enum):
    """What became of a row's physical state after a commit."""

    ACTIVE = "active"
    FINISHABLE = "finishable"
    CANCELLED_RELEASED = "cancelled_released"
    FAILED_RELEASED = "failed_released"
