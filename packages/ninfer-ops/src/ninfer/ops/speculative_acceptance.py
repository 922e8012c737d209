"""The contract of speculative acceptance."""

from __future__ import annotations

import torch
from torch import Tensor

from ninfer.contract import RowMismatch
from ninfer.ops.batch import SamplingBatch
from ninfer.ops.checks import check_batch, check_counts, check_logits, check_masks
from ninfer.ops.native import library_for, reserve_workspace
from ninfer.ops.proposal import PROPOSAL_CANDIDATES, SparseProposal
from ninfer.ops.reference.speculative_acceptance import accept_rows
from ninfer.ops.result import AcceptedTokens

_OP = "speculative_acceptance"


def speculative_acceptance(
    logits: Tensor,
    batch: SamplingBatch,
    drafts: Tensor,
    extents: Tensor,
    *,
    proposal: SparseProposal | None = None,
    masks: Tensor | None = None,
    counts: Tensor | None = None,
    out: AcceptedTokens | None = None,
    workspace: Tensor | None = None,
) -> AcceptedTokens:
    """Accept drafts against the constrained target and draw the token after them.

    Math:    p_i is the law of ``masked_sampling`` for column i, normalised, with the penalty count
             c + multiplicity of v in drafts[:i]. With old = the record's position, draft j passes
             when u(old + j + 1, ACCEPT) < p_j(d_j) (one-hot q), or p_j(d_j) >= q_j(d_j) or
             u * q_j(d_j) < p_j(d_j) (sparse q), and p_j(d_j) > 0. All tests are independent of
             each other; A is the place of the first that fails, or the extent. Where A < extent
             the correction is drawn by inverse CDF, in candidate order, from the positive part of
             p_A - q_A (one-hot: p_A without d_A) with u(old + A + 1, CORRECTION); a residual
             without mass gives the first candidate. Otherwise the bonus is drawn from p_A with
             u(old + A + 1, BONUS). T <= 0: p_i is one-hot at the best allowed token.
    Shapes:  logits bf16|f16|f32[B, P, V], V contiguous (the CUDA library takes up to 4,096 columns
             of 2**21 tokens, and K up to 63); batch B records, whose purpose is not
             used; drafts int64[B, K], K = P - 1; extents int32[B] in [0, K]; proposal [B, K, Q];
             masks int32[B, P, W]; counts int32[rows, V] as for ``masked_sampling``.
    Effects: ``out`` and ``workspace`` (of B * P columns) as for ``masked_sampling``. Columns
             after the extent are not looked at. A column without an allowed token or without a
             finite best logit accepts nothing; it decides the row's status only if it is column A.
    Raises:  RowMismatch — arguments contradict each other; InvalidMask — masks do not fit.
    Source:  specification 7.4, 8.2 and 8.3; reference contract, sections 2 and 3.1.
    """
    check_logits(_OP, logits, 3)
    check_batch(_OP, batch, logits)
    rows, positions, _ = logits.shape
    if positions < 1:
        raise RowMismatch(f"{_OP} logits: there is no position")
    _check(drafts, "drafts", (rows, positions - 1), torch.int64, logits)
    _check(extents, "extents", (rows,), torch.int32, logits)
    if proposal is not None:
        _check_proposal(proposal, logits)
    if masks is not None:
        check_masks(_OP, masks, logits)
    if counts is not None:
        check_counts(_OP, counts, logits)
    library = library_for(logits)
    if library is None:
        _require_extents(extents, positions - 1)
        found = accept_rows(logits, batch, drafts, extents, proposal, masks, counts)
        return found if out is None else out.store(found)
    out = AcceptedTokens.empty(rows, positions, logits.device) if out is None else out
    if workspace is None:
        workspace = reserve_workspace(rows * positions, logits.device)
    ids, q = (None, None) if proposal is None else proposal
    inputs = (logits, batch.records, drafts, extents, ids, q, masks, counts)
    library.speculative_acceptance(*inputs, *out, workspace, 0)
    return out


def _require_extents(extents: Tensor, draft_limit: int) -> None:
    # On a device this would wait; there the contract's range is trusted.
    if extents.device.type == "cpu" and bool(((extents < 0) | (extents > draft_limit)).any()):
        raise RowMismatch(f"{_OP} extents: {extents.tolist()} are not all in 0..{draft_limit}")


def _check_proposal(proposal: SparseProposal, logits: Tensor) -> None:
    candidates = proposal.ids.shape[-1] if proposal.ids.dim() else 0
    if not 1 <= candidates <= PROPOSAL_CANDIDATES:
        raise RowMismatch(
            f"{_OP} proposal: {candidates} candidates, not 1 to {PROPOSAL_CANDIDATES}"
        )
    shape = (logits.shape[0], logits.shape[1] - 1, candidates)
    _check(proposal.ids, "proposal ids", shape, torch.int64, logits)
    _check(proposal.q, "proposal q", shape, torch.float32, logits)


def _check(
    tensor: Tensor, name: str, shape: tuple[int, ...], dtype: torch.dtype, logits: Tensor
) -> None:
    if tuple(tensor.shape) != shape or tensor.dtype != dtype:
        found = f"{tensor.dtype}{tuple(tensor.shape)}"
        raise RowMismatch(f"{_OP} {name}: {found}, not {dtype}{shape}")
    if tensor.device != logits.device:
        raise RowMismatch(f"{_OP} {name}: on {tensor.device}, the logits are on {logits.device}")
