"""From raw logits to ordered candidates, column by column."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ninfer.contract import TOP_K_LIMIT, RowMismatch
from ninfer.ops.batch import SamplingBatch
from ninfer.ops.reference.candidates import Candidates, best_of_row, best_of_rows
from ninfer.ops.reference.logits import allowed_tokens, penalise
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
    penalised = columns.batch.penalised
    if columns.counts is None and bool(penalised.any()):
        raise RowMismatch("sampling: a row is penalised and there is no count table")
    if columns.counts is not None:
        held = columns.counts.shape[0]
        if bool((penalised & (columns.batch.counts_rows >= held)).any()):
            raise RowMismatch(f"sampling: a row counts beyond the {held} rows of the count table")


def _one_by_one(columns: Columns) -> Candidates:
    total = columns.logits.shape[0]
    found = Candidates(
        torch.full((total, TOP_K_LIMIT), -torch.inf),
        torch.full((total, TOP_K_LIMIT), -1, dtype=torch.int64),
        torch.zeros(total, dtype=torch.int32),
    )
    limits = columns.batch.limits.tolist()
    for column in _active_columns(columns):
        logits, words = _adjusted_column(columns, column)
        values, ids = best_of_row(logits, limits[column], words)
        status = _status(values, words, len(logits))
        found.status[column] = status
        if status is RowStatus.OK:
            found.values[column, : len(ids)] = values
            found.ids[column, : len(ids)] = torch.where(values != -torch.inf, ids, -1)
    return found


def _active_columns(columns: Columns) -> list[int]:
    if columns.active is None:
        return list(range(columns.logits.shape[0]))
    return columns.active.nonzero().flatten().tolist()


def _adjusted_column(columns: Columns, column: int) -> tuple[Tensor, Tensor | None]:
    """Return one column's logits after penalties, float32[V], and its mask words, int32[W]."""
    logits = columns.logits[column].to(torch.float32)
    if columns.counts is not None and bool(columns.batch.penalised[column]):
        logits = _penalised_row(columns, columns.counts, column, logits)
    if columns.masks is None or not bool(columns.batch.constrained[column]):
        return logits, None
    return logits, columns.masks[column]


def _penalised_row(columns: Columns, table: Tensor, column: int, logits: Tensor) -> Tensor:
    # Few tokens are counted; whole rows of temporaries would cost more than everything else.
    counts = table[int(columns.batch.counts_rows[column])]
    presence, frequency = columns.batch.presence[column], columns.batch.frequency[column]
    adjusted = logits.clone()
    ids = counts.nonzero().flatten()
    adjusted[ids] = penalise(logits[ids], counts[ids], presence, frequency)
    if columns.overlay is not None:
        extra = columns.overlay[column]
        extra = extra[extra >= 0]
        times = (extra.unsqueeze(0) == extra.unsqueeze(1)).sum(0)
        adjusted[extra] = penalise(logits[extra], counts[extra] + times, presence, frequency)
    return adjusted


def _status(values: Tensor, words: Tensor | None, token_domain: int) -> RowStatus:
    if not len(values):
        return RowStatus.EMPTY_SET
    best = float(values[0])
    if -torch.inf < best < torch.inf:
        return RowStatus.OK
    if best == -torch.inf and words is not None and not _allows_any(words, token_domain):
        return RowStatus.EMPTY_SET
    return RowStatus.NON_FINITE


def _allows_any(words: Tensor, token_domain: int) -> bool:
    """Return whether a bit of the token domain is set, whatever stands behind it."""
    behind = token_domain % 32
    last = int(words[-1]) & ((1 << behind) - 1 if behind else -1)
    return bool(last) or bool(words[:-1].any())


def _all_at_once(columns: Columns) -> Candidates:
    logits = columns.logits.to(torch.float32)
    batch = columns.batch
    if columns.counts is not None and columns.counts.shape[0]:
        counts_rows = torch.where(batch.penalised, batch.counts_rows, 0)
        counts = columns.counts[counts_rows.to(torch.int64)]
        if columns.overlay is not None:
            extra = columns.overlay
            counts = counts.scatter_add(1, extra.clamp(min=0), (extra >= 0).to(counts.dtype))
        presence, frequency = batch.presence.unsqueeze(1), batch.frequency.unsqueeze(1)
        adjusted = penalise(logits, counts, presence, frequency)
        logits = torch.where(batch.penalised.unsqueeze(1), adjusted, logits)
    keep = None
    if columns.masks is not None:
        keep = allowed_tokens(columns.masks, logits.shape[1]) | ~batch.constrained.unsqueeze(1)
    return best_of_rows(logits, keep)
