"""Speculative rounds as plain cases, run through the op and through the oracle."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from ninfer.contract import RngPurpose, SamplingParameters
from ninfer.ops import (
    AcceptedTokens,
    RngKey,
    SamplingBatch,
    SamplingRow,
    SparseProposal,
    speculative_acceptance,
)
from support.acceptance_oracle import Outcome, Proposal, run
from support.packed_masks import packed
from support.sampling_oracle import Support, target


@dataclass(frozen=True)
class Case:
    """One row of a round; ``drafts`` has the real extent."""

    logits: Sequence[Sequence[float]]
    drafts: Sequence[int]
    allowed: Sequence[set[int] | None]
    parameters: SamplingParameters
    proposals: Sequence[Proposal] | None = None
    counts: dict[int, int] = field(default_factory=dict)
    old_length: int = 10

    @property
    def constrained(self) -> bool:
        return any(allowed is not None for allowed in self.allowed)

    def column(self, index: int) -> Support:
        """Return the target after drafts[:index], penalties included."""
        counts = dict(self.counts)
        for token in self.drafts[:index]:
            counts[token] = counts.get(token, 0) + 1
        return target(self.logits[index], self.parameters, self.allowed[index], counts)

    def expected(self) -> Outcome:
        """Return what the sequential oracle licenses with this row's random numbers."""
        seed = self.parameters.seed

        def uniform(index: int, purpose: RngPurpose) -> float:
            return RngKey(seed, self.old_length + index + 1, purpose).uniform()

        def last(index: int, rejected: bool) -> float:
            bonus, correction = RngPurpose.SPECULATIVE_BONUS, RngPurpose.SPECULATIVE_CORRECTION
            return uniform(index, correction if rejected else bonus)

        tests = range(len(self.drafts))
        return run(
            [lambda index=index: self.column(index) for index in range(len(self.drafts) + 1)],
            self.drafts,
            self.proposals,
            [uniform(index, RngPurpose.SPECULATIVE_ACCEPT) for index in tests],
            last,
        )


def accept(
    cases: Sequence[Case], device: str, dtype: torch.dtype = torch.float32
) -> AcceptedTokens:
    """Run all cases as one batch; they share the domain and the draft limit of the longest."""
    domain = len(cases[0].logits[0])
    limit = max(len(case.logits) for case in cases) - 1
    logits = torch.zeros((len(cases), limit + 1, domain))
    drafts = torch.zeros((len(cases), limit), dtype=torch.int64)
    counts = torch.zeros((len(cases), domain), dtype=torch.int32)
    allowed: list[set[int] | None] = []
    for row, case in enumerate(cases):
        logits[row, : len(case.logits)] = torch.tensor(case.logits)
        drafts[row, : len(case.drafts)] = torch.tensor(case.drafts, dtype=torch.int64)
        for token, count in case.counts.items():
            counts[row, token] = count
        placeholders = [{0}] * (limit + 1 - len(case.allowed)) if case.constrained else []
        filled = [*case.allowed, *placeholders]
        allowed.extend(filled + [None] * (limit + 1 - len(filled)))
    batch = SamplingBatch.pack(
        [
            SamplingRow(case.parameters, case.old_length, RngPurpose.DECODE, case.constrained, row)
            for row, case in enumerate(cases)
        ],
        device,
    )
    extents = torch.tensor([len(case.drafts) for case in cases], dtype=torch.int32)
    return speculative_acceptance(
        logits.to(dtype).to(device),
        batch,
        drafts.to(device),
        extents.to(device),
        proposal=_proposal(cases, limit, device),
        masks=packed(allowed, domain).view(len(cases), limit + 1, -1).to(device),
        counts=counts.to(device),
    )


def _proposal(cases: Sequence[Case], limit: int, device: str) -> SparseProposal | None:
    if all(case.proposals is None for case in cases):
        return None
    ids = torch.full((len(cases), limit, 16), -1, dtype=torch.int64)
    q = torch.zeros((len(cases), limit, 16))
    for row, case in enumerate(cases):
        for index, listed in enumerate(case.proposals or []):
            for place, (token, mass) in enumerate(listed.items()):
                ids[row, index, place], q[row, index, place] = token, mass
    return SparseProposal(ids.to(device), q.to(device))
