"""Drafters for tests: they know the answer and err on purpose, throw coins, or take notes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from ninfer.contract import RngPurpose, SpeculativeBackend
from ninfer.ops import RngKey, SparseProposal
from ninfer.runtime.models.drafters import ContextRow, Drafter, Proposal, ProposalRow
from ninfer.runtime.models.kv_pool import KvPool

Script = Callable[[int, int], int]
"""The token drafted for a place of the ledger, whose anchor is this token."""


@dataclass
class ScriptedDrafter:
    """Implements: Drafter; a table says what stands at each place of the ledger.

    Every entry is checked: columns are absorbed once, in order, with their features.
    """

    script: Script
    ahead: bool = False
    taps: tuple[int, ...] = ()
    width: int = 64
    backend: SpeculativeBackend = SpeculativeBackend.MTP
    proposals: int = 0
    weight_bytes: int = 0

    @property
    def feature_width(self) -> int:
        return self.width * max(len(self.taps), 1)

    @property
    def lookahead(self) -> int:
        return int(self.ahead)

    @property
    def drafts_ahead(self) -> bool:
        return self.ahead

    def new_pool(self, pages: int) -> KvPool:
        return KvPool(1, pages, 1, 2, device=torch.device("cpu"), dtype=torch.float32)

    def absorb(self, rows: Sequence[ContextRow], pool: KvPool) -> None:
        for row in rows:
            self._write(row, pool)

    def propose(self, rows: Sequence[ProposalRow], pool: KvPool) -> Proposal:
        self.proposals += 1
        longest = max(row.drafts for row in rows)
        drafts = []
        for row in rows:
            self._write(row.context, pool)
            first = row.context.end + 1
            drafts.append([self.script(first + i, row.anchor) for i in range(longest)])
        return Proposal(torch.tensor(drafts))

    def _write(self, row: ContextRow, pool: KvPool) -> None:
        """Leave each column's number in its slot and check those before."""
        assert row.features.shape[1] == self.feature_width
        assert len(row.next_tokens) >= len(row.features) - 1 + self.lookahead
        before = row.slots.slots(0, row.start)
        assert pool.keys[0, before, 0, 0].tolist() == [float(i) + 1 for i in range(row.start)]
        pool.keys[0, row.slots.slots(row.start, row.end), 0, 0] = torch.arange(
            row.start + 1.0, row.end + 1.0
        )


@dataclass
class RecordingDrafter:
    """Implements: Drafter; notes what the inner one proposed for which frontier."""

    inner: Drafter
    notes: list[tuple[int, int, list[int]]] = field(default_factory=list)

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    def propose(self, rows: Sequence[ProposalRow], pool: KvPool) -> Proposal:
        proposal = self.inner.propose(rows, pool)
        for row, tokens in zip(rows, proposal.tokens.tolist(), strict=True):
            self.notes.append((row.context.end, row.anchor, tokens[: row.drafts]))
        return proposal


def erring(answer: Sequence[int], start: int, period: int) -> Script:
    """Return a script that is right except at every ``period``-th place."""

    def script(place: int, anchor: int) -> int:
        index = place - start
        token = answer[index] if index < len(answer) else 0
        return (token + 1) % 256 if place % period == 0 else token

    return script


@dataclass
class CoinDrafter(ScriptedDrafter):
    """Implements: Drafter; draws the first draft of every round from two tokens, half and half."""

    script: Script = field(default=lambda place, anchor: 0)
    backend: SpeculativeBackend = SpeculativeBackend.DFLASH2
    sides: tuple[int, int] = (0, 1)
    drawn: list[int] = field(default_factory=list)

    def propose(self, rows: Sequence[ProposalRow], pool: KvPool) -> Proposal:
        """Implements: Drafter.propose; what was drawn from stands beside the drafts."""
        longest = max(row.drafts for row in rows)
        tokens = []
        for row in rows:
            self._write(row.context, pool)
            keys = [
                RngKey(row.sampling.seed, row.context.end + i, RngPurpose.DFLASH2_PROPOSAL)
                for i in range(longest)
            ]
            tokens.append([self.sides[int(key.uniform() >= 0.5)] for key in keys])
            self.drawn.append(tokens[-1][0])
        ids = torch.tensor(self.sides).expand(len(rows), longest, 2).contiguous()
        q = torch.full(ids.shape, 0.5)
        return Proposal(torch.tensor(tokens), SparseProposal(ids, q))
