"""What every drafter is to a program.

A drafter reads features of the target's computed columns and keeps one entry per column in a pool
of its own, addressed by the target's slots. Entries beyond a sequence's frontier are provisional,
as the target's are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
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


class DraftKeys(NamedTuple):
    """What drafts of B rows start from and are drawn with.

    Shapes: anchors int64[B]; positions int64[B], the logical position of the first draft's draw;
            seeds int64[B], their bit patterns; temperatures float32[B].
    """

    anchors: Tensor
    positions: Tensor
    seeds: Tensor
    temperatures: Tensor

    @classmethod
    def of(cls, rows: Sequence[ProposalRow], device: torch.device) -> DraftKeys:
        """Return the keys of rows."""
        seeds = [row.sampling.seed for row in rows]
        return cls(
            torch.tensor([row.anchor for row in rows], device=device),
            torch.tensor([row.context.end for row in rows], device=device),
            torch.tensor([s - (1 << 64) if s >> 63 else s for s in seeds], device=device),
            torch.tensor([row.sampling.temperature for row in rows], device=device),
        )


class PagedProposal(NamedTuple):
    """Proposal rows of one shape, in tensors: what ``ProposalRow`` says, B times.

    Shapes: features dtype[B, C, width], of which the first ``counts`` int64[B] are columns from
            ``starts`` int64[B] on; following int64[B, C], the token after each of them; drafts and
            blocks int64[B]; pages int64[B, L]. ``limit`` drafts are made for every row.
    """

    keys: DraftKeys
    features: Tensor
    starts: Tensor
    counts: Tensor
    following: Tensor
    drafts: Tensor
    blocks: Tensor
    pages: Tensor
    limit: int


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

    def propose_paged(self, rows: PagedProposal, pool: KvPool) -> Proposal:
        """Propose as ``propose`` does, for rows of one shape and without waiting for the device.

        Effects: as of ``propose``; a row without columns may write its anchor's entry early.
        """
        ...
