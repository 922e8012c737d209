"""Packed token masks: word layout, position states, and who fills them.

Axes: B rows, K drafts, P = K + 1 positions, V token domain, W = ceil(V / 32) words.
Source: specification 7.1 and 7.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

DRAFT_LIMIT = 63
"""Drafts of one row at most, so that dead ends fit one 64-bit set."""

PLACEHOLDER_TOKEN = 0
"""The one bit set where no real mask exists; such a column is never committed."""


def mask_words(token_domain: int) -> int:
    """Return W, the int32 words of one position; bits at and above V are zero."""
    return (token_domain + 31) // 32


def mask_bit(token: int) -> tuple[int, int]:
    """Return word index and bit value of a token id: ``1 << (id % 32)`` in word ``id // 32``."""
    return token // 32, 1 << (token % 32)


class PositionState(Enum):
    """What one position of a row's mask means."""

    UNCONSTRAINED = "unconstrained"
    READY = "ready"
    DEAD_END = "dead_end"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class Lookahead:
    """What one lookahead found along its drafts.

    Units: positions. ``reachable`` positions come first (READY or DEAD_END); the rest, up to
    ``positions``, hold the placeholder. Bit i of ``dead_ends`` marks position i. ``filled`` counts
    real mask fills.
    """

    positions: int
    reachable: int
    dead_ends: int
    filled: int

    def state(self, position: int) -> PositionState:
        """Return the state of one position."""
        if position >= self.reachable:
            return PositionState.UNREACHABLE
        if self.dead_ends >> position & 1:
            return PositionState.DEAD_END
        return PositionState.READY

    def is_dead_within(self, licensed_tokens: int) -> bool:
        """Return whether a dead end lies among the first ``licensed_tokens`` positions."""
        return bool(self.dead_ends & ((1 << licensed_tokens) - 1))


class MaskProvider(Protocol):
    """Fills the masks of one round; borrowed for one synchronous Program call.

    Rows are compact batch rows of that call; the engine maps them to requests.
    """

    def is_constrained(self, row: int) -> bool:
        """Return whether a row has a mask at all; rows without one are never written."""
        ...

    def fill(
        self, drafts: Sequence[Sequence[int]], masks: memoryview
    ) -> Sequence[Lookahead | None]:
        """Write the allowed sets of every constrained row.

        Math:    masks[b, i] = allowed(committed_b + drafts[b][:i]) for 0 <= i <= len(drafts[b]).
        Shapes:  drafts B sequences of new proposals (no anchor), at most K each;
                 masks int32[B, P, W], C-contiguous, host memory.
        Effects: rows of unconstrained requests are untouched (their entry is None); of the others
                 positions 0..len(drafts[b]) are written; matchers are back at their marks.
        Raises:  PendingPreview — a row has an unresolved preview; RollbackFailed.
        """
        ...

    def uploaded(self, row: int, byte_count: int) -> None:
        """Count mask bytes of one row that went to the device."""
        ...
