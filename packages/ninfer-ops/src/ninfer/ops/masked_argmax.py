"""The contract of the masked argmax."""

from __future__ import annotations

from torch import Tensor

from ninfer.contract import GREEDY_PRESET
from ninfer.ops.batch import SamplingBatch, SamplingRow
from ninfer.ops.checks import check_logits, check_masks
from ninfer.ops.native import library_for, reserve_workspace
from ninfer.ops.reference.columns import Columns
from ninfer.ops.reference.masked_sampling import sample_columns
from ninfer.ops.result import SampledTokens


def masked_argmax(
    logits: Tensor,
    masks: Tensor | None = None,
    *,
    out: SampledTokens | None = None,
    workspace: Tensor | None = None,
) -> SampledTokens:
    """Return the largest allowed logit's token of every row.

    Math:    argmax over allowed v of logits[b, v], ties (also +0 and -0) to the lower id.
    Shapes:  logits bf16|f16|f32[B, V], row stride may exceed V; masks int32[B, W] for all rows or
             None for no row.
    Effects: ``out`` and ``workspace`` as for ``masked_sampling``.
    Raises:  RowMismatch — bad logits; InvalidMask — the masks do not fit the logits.
    Source:  specification 7.3.
    """
    check_logits("masked_argmax", logits, 2)
    if masks is not None:
        check_masks("masked_argmax", masks, logits)
    rows = logits.shape[0]
    library = library_for(logits)
    if library is None:
        row = SamplingRow(GREEDY_PRESET, position=0, constrained=masks is not None)
        batch = SamplingBatch.pack([row] * rows, logits.device)
        sampled = sample_columns(Columns(logits, batch, masks))
        return sampled if out is None else out.store(sampled)
    out = SampledTokens.empty(rows, logits.device) if out is None else out
    scratch = reserve_workspace(rows, logits.device) if workspace is None else workspace
    library.masked_argmax(logits, masks, *out, scratch, 0)
    return out
