"""The contract of the masked argmax."""

from __future__ import annotations

from torch import Tensor

from ninfer.contract import GREEDY_PRESET, RowMismatch
from ninfer.ops.batch import SamplingBatch, SamplingRow
from ninfer.ops.masked_sampling import masked_sampling
from ninfer.ops.result import SampledTokens


def masked_argmax(logits: Tensor, masks: Tensor | None = None) -> SampledTokens:
    """Return the largest allowed logit's token of every row.

    Math:   argmax over allowed v of logits[b, v], ties (also +0 and -0) to the lower id.
    Shapes: logits bf16|f16|f32[B, V], row stride may exceed V; masks int32[B, W] for all rows or
            None for no row.
    Raises: RowMismatch — bad logits; InvalidMask — the masks do not fit the logits.
    Source: specification 7.3.
    """
    if logits.dim() != 2:
        raise RowMismatch(f"masked_argmax logits: rank {logits.dim()}, not 2")
    row = SamplingRow(GREEDY_PRESET, position=0, constrained=masks is not None)
    batch = SamplingBatch.pack([row] * logits.shape[0], logits.device)
    return masked_sampling(logits, batch, masks)
