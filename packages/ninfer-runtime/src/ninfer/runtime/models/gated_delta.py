"""The gated delta rule over a block of columns, without touching the state.

A block returns records from which any accepted prefix of it can be folded into the state later,
so a round that is dropped leaves nothing to undo.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

BLOCK_COLUMNS = 64
"""Columns of one triangular solve; longer inputs go block after block."""


class DeltaRecords(NamedTuple):
    """What folding a prefix needs.

    Shapes: keys float32[R, H, T, dk]; deltas float32[R, H, T, dv]; log_decay float32[R, H, T],
            the decay of each column summed from the first.
    """

    keys: Tensor
    deltas: Tensor
    log_decay: Tensor


def gated_delta(
    queries: Tensor, keys: Tensor, values: Tensor, decay: Tensor, beta: Tensor, state: Tensor
) -> tuple[Tensor, DeltaRecords]:
    """Return what every column reads from the state, and the records of all columns.

    Math:   S_t = e^{g_t} S_{t-1} + k_t d_tᵀ with d_t = β_t (v_t − e^{g_t} S_{t-1}ᵀ k_t), and
            o_t = S_tᵀ q_t. With L_t = Σ_{i≤t} g_i the d of a block solve
            (I + A) D = β (V − e^L K S_0), A_ti = β_t e^{L_t − L_i} k_t·k_i for i < t.
            A column with g = 0 and β = 0 leaves the state as it is.
    Shapes: queries and keys float32[R, H, T, dk]; values [R, H, T, dv]; decay (g ≤ 0) and beta
            [R, H, T]; state [R, H, dk, dv]; the result [R, H, T, dv].
    Effects: ``state`` is only read.
    """
    read: list[Tensor] = []
    blocks: list[DeltaRecords] = []
    total = torch.zeros_like(decay[..., 0])
    for first in range(0, queries.shape[2], BLOCK_COLUMNS):
        part = slice(first, first + BLOCK_COLUMNS)
        if blocks:
            state = fold_all(state, blocks[-1])
        out, found = _block(
            queries[:, :, part], keys[:, :, part], values[:, :, part],
            decay[:, :, part], beta[:, :, part], state,
        )  # fmt: skip
        read.append(out)
        blocks.append(found)
    if len(blocks) == 1:
        return read[0], blocks[0]
    sums = []
    for block in blocks:
        sums.append(block.log_decay + total[..., None])
        total = sums[-1][..., -1]
    return torch.cat(read, dim=2), DeltaRecords(
        torch.cat([block.keys for block in blocks], dim=2),
        torch.cat([block.deltas for block in blocks], dim=2),
        torch.cat(sums, dim=2),
    )


def fold(state: Tensor, records: DeltaRecords, accepted: Tensor) -> Tensor:
    """Return the state after the first ``accepted`` columns of a block.

    Math:   S_n = e^{L_n} S_0 + Σ_{i<n} e^{L_n − L_i} k_i d_iᵀ.
    Shapes: state float32[R, H, dk, dv], as the block read it; accepted int64[R], 0..T.
    """
    columns = records.keys.shape[2]
    kept = torch.arange(columns, device=state.device) < accepted[:, None]
    log_decay = functional.pad(records.log_decay, (1, 0))
    reached = log_decay.gather(2, accepted[:, None, None].expand(-1, log_decay.shape[1], 1))
    # A dropped column would need a positive exponent; it is cleared before the exponential.
    weights = (reached - records.log_decay).masked_fill(~kept[:, None], -torch.inf).exp()
    added = (records.keys * weights[..., None]).transpose(-1, -2) @ records.deltas
    return state * reached[..., None].exp() + added


def fold_all(state: Tensor, records: DeltaRecords) -> Tensor:
    """Return the state after every column of a block; see ``fold``."""
    reached = records.log_decay[..., -1:]
    weights = (reached - records.log_decay).exp()
    added = (records.keys * weights[..., None]).transpose(-1, -2) @ records.deltas
    return state * reached[..., None].exp() + added


def decay_between(log_decay: Tensor) -> Tensor:
    """Return e^{L_t − L_i} for i ≤ t and 0 for others, [..., T, T], of summed decays [..., T]."""
    columns = log_decay.shape[-1]
    lower = torch.ones(columns, columns, dtype=torch.bool, device=log_decay.device).tril()
    apart = log_decay[..., :, None] - log_decay[..., None, :]
    return apart.masked_fill(~lower, -torch.inf).exp()


def unit_lower_inverse(lower: Tensor) -> Tensor:
    """Return (I + A)⁻¹ of strictly lower A [..., T, T] by products alone.

    Math:   with X_b the inverse of the diagonal blocks of size b and A_b the part of A that joins
            two such blocks, X_2b = X_b − X_b A_b X_b.
    """
    columns = lower.shape[-1]
    place = torch.arange(columns, device=lower.device)
    inverse = torch.eye(columns, dtype=lower.dtype, device=lower.device)
    size = 1
    while size < columns:
        is_pair = (place // (2 * size)).unsqueeze(1) == place // (2 * size)
        is_joint = is_pair & ((place // size).unsqueeze(1) != place // size)
        inverse = inverse - inverse @ lower.masked_fill(~is_joint, 0.0) @ inverse
        size *= 2
    return inverse.expand_as(lower)


def _solve_unit_lower(system: Tensor, wanted: Tensor) -> Tensor:
    if system.device.type != "cpu":
        # Products can be captured into a graph whatever the solver of the library does.
        return unit_lower_inverse(system) @ wanted
    solved: Tensor = torch.linalg.solve_triangular(system, wanted, upper=False, unitriangular=True)
    return solved


def _block(
    queries: Tensor, keys: Tensor, values: Tensor, decay: Tensor, beta: Tensor, state: Tensor
) -> tuple[Tensor, DeltaRecords]:
    log_decay = decay.cumsum(-1)
    between = decay_between(log_decay)
    start = log_decay[..., None].exp()
    system = (beta[..., None] * between * (keys @ keys.transpose(-1, -2))).tril(-1)
    wanted = beta[..., None] * (values - start * (keys @ state))
    deltas = _solve_unit_lower(system, wanted)
    read = start * (queries @ state) + (between * (queries @ keys.transpose(-1, -2))) @ deltas
    return read, DeltaRecords(keys, deltas, log_decay)
