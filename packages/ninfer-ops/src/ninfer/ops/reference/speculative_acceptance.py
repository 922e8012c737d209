"""Speculative acceptance in torch.

Implements: ninfer.ops.speculative_acceptance.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ninfer.contract import PLACEHOLDER_TOKEN, RngPurpose
from ninfer.ops.batch import SamplingBatch
from ninfer.ops.proposal import SparseProposal
from ninfer.ops.reference.columns import Columns, candidates_of
from ninfer.ops.reference.distribution import draw, weights_of
from ninfer.ops.result import AcceptedTokens
from ninfer.ops.rng import uniforms
from ninfer.ops.status import RowStatus


class _Targets(NamedTuple):
    """Normalised target distributions of all columns: p float64[B, P, 20], ids, status[B, P]."""

    p: Tensor
    ids: Tensor
    status: Tensor


def accept_rows(
    logits: Tensor,
    batch: SamplingBatch,
    drafts: Tensor,
    extents: Tensor,
    proposal: SparseProposal | None,
    masks: Tensor | None,
    counts: Tensor | None,
) -> AcceptedTokens:
    """Return the licensed tokens of every row."""
    targets = _targets(logits, batch, drafts, extents, masks, counts)
    accepted = _accepted_drafts(targets, batch, drafts, extents, proposal)
    last, status = _last_token(targets, batch, drafts, extents, proposal, accepted)
    place = torch.arange(logits.shape[1], device=logits.device)
    tokens = torch.nn.functional.pad(drafts, (0, 1))
    tokens = torch.where(place < accepted.unsqueeze(1), tokens, PLACEHOLDER_TOKEN)
    tokens = torch.where(place == accepted.unsqueeze(1), last.unsqueeze(1), tokens)
    return AcceptedTokens(tokens, accepted.to(torch.int32), status)


def _targets(
    logits: Tensor,
    batch: SamplingBatch,
    drafts: Tensor,
    extents: Tensor,
    masks: Tensor | None,
    counts: Tensor | None,
) -> _Targets:
    rows, positions, domain = logits.shape
    place = torch.arange(positions, device=logits.device)
    before = place[: positions - 1] < place.unsqueeze(1)
    # No column behind a draft outside the domain is reached.
    counted = before & ((drafts >= 0) & (drafts < domain)).unsqueeze(1)
    overlay = torch.where(counted, drafts.unsqueeze(1), -1)
    records = SamplingBatch(batch.records.repeat_interleave(positions, dim=0))
    columns = Columns(
        logits.flatten(0, 1),
        records,
        None if masks is None else masks.flatten(0, 1),
        counts,
        overlay.flatten(0, 1),
        (place <= extents.unsqueeze(1)).flatten(),
    )
    candidates = candidates_of(columns)
    weights = weights_of(candidates, records)
    # A running sum adds in candidate order, as the kernels do.
    p = weights / weights.cumsum(1)[:, -1:]
    shape = (rows, positions, p.shape[1])
    status = candidates.status.view(rows, positions)
    return _Targets(p.view(shape), candidates.ids.view(shape), status)


def _accepted_drafts(
    targets: _Targets,
    batch: SamplingBatch,
    drafts: Tensor,
    extents: Tensor,
    proposal: SparseProposal | None,
) -> Tensor:
    """Return A: how many drafts pass before the first that fails, int64[B]."""
    draft_limit = drafts.shape[1]
    place = torch.arange(draft_limit, device=drafts.device)
    is_draft = targets.ids[:, :draft_limit] == drafts.unsqueeze(-1)
    p = torch.where(is_draft, targets.p[:, :draft_limit], 0.0).sum(-1)
    u = _uniform(batch, place, RngPurpose.SPECULATIVE_ACCEPT)
    if proposal is None:
        passed = u < p
    else:
        q = _listed(proposal, slice(None), drafts.unsqueeze(-1)).squeeze(-1)
        passed = (p > 0) & ((p >= q) | (u * q < p))
    sound = targets.status[:, :draft_limit] == RowStatus.OK
    passed = passed & sound & (place < extents.unsqueeze(1))
    return passed.to(torch.int64).cumprod(1).sum(1)


def _last_token(
    targets: _Targets,
    batch: SamplingBatch,
    drafts: Tensor,
    extents: Tensor,
    proposal: SparseProposal | None,
    accepted: Tensor,
) -> tuple[Tensor, Tensor]:
    """Return the correction or bonus of every row and the status of the column it comes from."""
    row = torch.arange(accepted.shape[0], device=accepted.device)
    p, ids, status = (part[row, accepted] for part in targets)
    rejected = accepted < extents
    purpose = torch.where(rejected, RngPurpose.SPECULATIVE_CORRECTION, RngPurpose.SPECULATIVE_BONUS)
    u = _uniform(batch, accepted.unsqueeze(1), purpose.unsqueeze(1)).squeeze(1)
    if drafts.shape[1]:
        at = accepted.clamp(max=drafts.shape[1] - 1)
        residual = _residual(p, ids, drafts[row, at], proposal, (row, at))
        p = torch.where(rejected.unsqueeze(1), residual, p)
    token = ids.gather(1, draw(p, u).unsqueeze(1)).squeeze(1)
    return torch.where(status == RowStatus.OK, token, PLACEHOLDER_TOKEN), status


def _residual(
    p: Tensor,
    ids: Tensor,
    draft: Tensor,
    proposal: SparseProposal | None,
    at: tuple[Tensor, Tensor],
) -> Tensor:
    """Return the unnormalised positive part of p - q, float64[B, 20]."""
    if proposal is None:
        return torch.where(ids == draft.unsqueeze(1), 0.0, p)
    return (p - _listed(proposal, at, ids)).clamp(min=0.0)


def _listed(proposal: SparseProposal, at: slice | tuple[Tensor, Tensor], tokens: Tensor) -> Tensor:
    """Return q of these tokens at these positions, float64 with the shape of ``tokens``."""
    matches = tokens.unsqueeze(-1) == proposal.ids[at].unsqueeze(-2)
    q = proposal.q[at].to(torch.float64).unsqueeze(-2)
    return torch.where(matches, q, 0.0).sum(-1)


def _uniform(batch: SamplingBatch, index: Tensor, purpose: Tensor | int) -> Tensor:
    """Return u of the token at draft index ``index``: logical position old length + index + 1."""
    seeds = batch.seeds.unsqueeze(1)
    positions = batch.positions.unsqueeze(1) + index + 1
    zeros = torch.zeros_like(seeds)
    return uniforms(seeds, positions, zeros + purpose, zeros)
