"""From raw logits to ordered candidates, column by column."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ninfer.contract import TOP_K_LIMIT, RowMismatch
from ninfer.ops.batch import SamplingBatch
from ninfer.ops.reference.candidates import Candidates, best_of_row, best_of_rows
from ninfer.ops.reference.logits import expand, mask_out, penalise
from ninfer.ops.status import RowStatus

_LARGE_DOMAIN = 4096
"""From here on block maxima beat sorting keys on one core."""


class Columns(NamedTuple):
    """N columns of logits and what adjusts them.

    Shapes: logits [N, V]; batch N records; masks int32[N, W] or None; counts int32[rows, V] or
            None; overlay int64[N, K], tokens counted on top of ``counts``, -1 where there is none;
            active bool[N], the others are not looked at and come back empty.
    """

    logits: Tensor
    batch: SamplingBatch
    masks: Tensor | None = None
    counts: Tensor | None = None
    overlay: Tensor | None = None
    active: Tensor | None = None


def candidates_of(columns: Columns) -> Candidates:
    """Return the best allowed tokens of every column after penalties."""
    if columns.logits.device.type != "cpu":
        return _all_at_once(columns)
    _require_inputs(columns)
    if columns.logits.shape[1] < _LARGE_DOMAIN:
        return _all_at_once(columns)
    return _one_by_one(columns)


def _require_inputs(columns: Columns) -> None:
    # On a device this would wait; there the contract's "None where no row needs it" is trusted.
    if columns.masks is None and bool(columns.batch.constrained.any()):
        raise RowMismatch("sampling: a row is constrained and there are no masks")
    if columns.counts is None and bool(columns.batch.penalised.any()):
        raise RowMismatch("sampling: a row is penalised and there is no count table")


def _one_by_one(columns: Columns) -> Candidates:
    total = columns.logits.shape[0]
    found = Candidates(
        torch.full((total, TOP_K_LIMIT), -torch.inf),
        torch.full((total, TOP_K_LIMIT), -1, dtype=torch.int64),
        torch.zeros(total, dtype=torch.int32),
    )
    constrained = columns.batch.constrained.tolist()
    penalised = columns.batch.penalised.tolist()
    limits = columns.batch.limits.tolist()
    active = [True] * total if columns.active is None else columns.active.tolist()
    for column in range(total):
        if not active[column]:
            continue
        logits = columns.logits[column : column + 1].to(torch.float32)
        if columns.counts is not None and penalised[column]:
            part = slice(column, column + 1)
            logits = _penalised(columns, columns.counts, part, logits)
        words = None
        if columns.masks is not None and constrained[column]:
            words = columns.masks[column : column + 1]
            logits = mask_out(logits, words)
        values, ids = best_of_row(logits[0], limits[column])
        status = _status(float(values[0]), words)
        found.status[column] = status
        if status is RowStatus.OK:
            found.values[column, : len(ids)] = values
            found.ids[column, : len(ids)] = torch.where(values != -torch.inf, ids, -1)
    return found


def _status(best: float, words: Tensor | None) -> RowStatus:
    if -torch.inf < best < torch.inf:
        return RowStatus.OK
    if best == -torch.inf and words is not None and not bool(words.any()):
        return RowStatus.EMPTY_SET
    return RowStatus.NON_FINITE


def _all_at_once(columns: Columns) -> Candidates:
    logits = columns.logits.to(torch.float32)
    if columns.counts is not None:
        adjusted = _penalised(columns, columns.counts, slice(None), logits)
        logits = torch.where(columns.batch.penalised.unsqueeze(1), adjusted, logits)
    keep = None
    if columns.masks is not None:
        free = ~columns.batch.constrained.unsqueeze(1)
        keep = (expand(columns.masks, logits.shape[1]) != 0) | free
    return best_of_rows(logits, keep)


def _penalised(columns: Columns, table: Tensor, part: slice, logits: Tensor) -> Tensor:
    batch = columns.batch
    counts = table[batch.counts_rows[part].to(torch.int64)]
    if columns.overlay is not None:
        extra = columns.overlay[part]
        counts = counts.scatter_add(1, extra.clamp(min=0), (extra >= 0).to(counts.dtype))
    return penalise(logits, counts, batch.presence[part], batch.frequency[part])
