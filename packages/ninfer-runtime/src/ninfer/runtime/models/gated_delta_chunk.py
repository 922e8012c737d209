"""The gated delta rule over a long chunk, for devices that pay for every launch.

Implements: ninfer.runtime.models.gated_delta.gated_delta. Match: it, up to the order of sums. What
does not depend on the state is found for all blocks at once; only the states go block after block.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ninfer.runtime.models.gated_delta import (
    BLOCK_COLUMNS,
    DeltaRecords,
    decay_between,
    unit_lower_inverse,
)


def gated_delta_chunk(
    queries: Tensor, keys: Tensor, values: Tensor, decay: Tensor, beta: Tensor, state: Tensor
) -> tuple[Tensor, DeltaRecords]:
    """Return what every column reads from the state, and the records of all columns.

    Math:    with S_0 the state before a block and X = (I + A)⁻¹ of its system, its deltas are
             D = U − W S_0 for U = X β V and W = X β e^L K, and the state behind it is
             e^{L_n} S_0 + (e^{L_n − L} K)ᵀ D.
    Shapes:  as of ``gated_delta``; columns of zeros fill the last block.
    """
    columns, width = queries.shape[2], values.shape[-1]
    spare = -columns % BLOCK_COLUMNS
    q, k, v = (_in_blocks(functional.pad(x, (0, 0, 0, spare))) for x in (queries, keys, values))
    log_decay = _in_blocks(functional.pad(decay, (0, spare))).cumsum(-1)
    step = _in_blocks(functional.pad(beta, (0, spare)))[..., None]
    between, start = decay_between(log_decay), log_decay[..., None].exp()
    system = (step * between * (k @ k.transpose(-1, -2))).tril(-1)
    solved = unit_lower_inverse(system) @ (step * torch.cat((v, start * k), dim=-1))
    states, deltas = _states(state, solved[..., :width], solved[..., width:], k, log_decay)
    read = (start * q) @ states + (between * (q @ k.transpose(-1, -2))) @ deltas
    before = functional.pad(log_decay[..., -1].cumsum(-1), (1, -1))
    total = log_decay + before[..., None]
    return _joined(read, columns), DeltaRecords(
        keys, _joined(deltas, columns), _joined(total, columns)
    )


def _in_blocks(x: Tensor) -> Tensor:
    """Return [R, H, T, …] as [R, H, N, 64, …]."""
    rows, heads, columns, *rest = x.shape
    return x.reshape(rows, heads, columns // BLOCK_COLUMNS, BLOCK_COLUMNS, *rest)


def _joined(x: Tensor, columns: int) -> Tensor:
    return x.flatten(2, 3)[:, :, :columns]


def _states(
    state: Tensor, fresh: Tensor, known: Tensor, keys: Tensor, log_decay: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the state before every block [R, H, N, dk, dv], and D of every block."""
    rows, heads, blocks = fresh.shape[:3]
    left = (log_decay[..., -1:] - log_decay).exp()
    folded = (keys * left[..., None]).transpose(-1, -2).flatten(0, 1)
    kept = log_decay[..., -1, None, None].exp().flatten(0, 1)
    fresh, known, current = fresh.flatten(0, 1), known.flatten(0, 1), state.flatten(0, 1)
    before, deltas = [], []
    for block in range(blocks):
        before.append(current)
        deltas.append(torch.baddbmm(fresh[:, block], known[:, block], current, alpha=-1))
        current = torch.baddbmm(current * kept[:, block], folded[:, block], deltas[-1])
    return (
        torch.stack(before, dim=1).unflatten(0, (rows, heads)),  # type: ignore[no-untyped-call]
        torch.stack(deltas, dim=1).unflatten(0, (rows, heads)),  # type: ignore[no-untyped-call]
    )
