"""What every drafter is to a program.

A drafter reads features of the target's computed columns and keeps one entry per column in a pool
of its own, addressed by the target's slots. Entries beyond a sequence's frontier are provisional,
as the target's are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from torch import Tensor

from ninfer.contract import SamplingParameters, SpeculativeBackend
from ninfer.ops import SparseProposal
from ninfer.runtime.models.kv_pool import KvPool, SlotMap


class ContextRow(NamedTuple):
    """Columns of one sequence whose entries are to be written.

    Shapes: features dtype[n, width] of the target's columns ``start`` to ``start + n``;
            ``next_tokens`` holds the token after each of them, n where the drafter looks ahead.
    """

    start: int
    features: Tensor
    next_tokens: Sequence[int]
    slots: SlotMap

    @property
    def end(self) -> int:
        """Return the first column after these."""
        return self.start + self.features.shape[0]


class ProposalRow(NamedTuple):
    """One sequence that wants ``drafts`` tokens after its anchor.

    ``context`` ends right before the anchor. ``block`` drafts can be computed in the room there
    is, for drafters whose drafts depend on how many are computed together.
    """

    context: ContextRow
    anchor: int
    drafts: int
    block: int
    sampling: SamplingParameters


class Proposal(NamedTuple):
    """What a drafter proposes.

    Shapes: tokens int64[B, K'], K' the largest number asked for; later places of a row hold
            anything. ``distribution`` [B, K', Q] is None where every draft is the drafter's best.
    """

    tokens: Tensor
    distribution: SparseProposal | None = None


class Drafter(Protocol):
    """Proposes tokens; holds weights, and nothing of any sequence."""

    @property
    def backend(self) -> SpeculativeBackend:
        """Return the name under which options ask for it."""
        ...

    @property
    def taps(self) -> tuple[int, ...]:
        """Return the target layers whose streams are its features; none: the final hidden state."""
        ...

    @property
    def feature_width(self) -> int:
        """Return the numbers of one column's features."""
        ...

    @property
    def weight_bytes(self) -> int:
        """Return the bytes of its own weights."""
        ...

    @property
    def lookahead(self) -> int:
        """Return how many tokens after a column its entry depends on."""
        ...

    @property
    def drafts_ahead(self) -> bool:
        """Return whether a round makes the next round's drafts, before its commit."""
        ...

    def new_pool(self, pages: int) -> KvPool:
        """Return an empty pool for its entries."""
        ...

    def absorb(self, rows: Sequence[ContextRow], pool: KvPool) -> None:
        """Write the entries of columns."""
        ...

    def propose(self, rows: Sequence[ProposalRow], pool: KvPool) -> Proposal:
        """Write the entries of the rows' contexts and propose.

        Effects: entries from the frontier on may be written, up to ``block`` after the anchor's.
        """
        ...
