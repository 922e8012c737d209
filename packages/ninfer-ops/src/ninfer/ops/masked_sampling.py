"""The contract of masked sampling."""

from __future__ import annotations

from torch import Tensor

from ninfer.ops.batch import SamplingBatch
from ninfer.ops.checks import check_batch, check_counts, check_logits, check_masks
from ninfer.ops.native import library_for, reserve_workspace
from ninfer.ops.reference.columns import Columns
from ninfer.ops.reference.masked_sampling import sample_columns
from ninfer.ops.result import SampledTokens


def masked_sampling(
    logits: Tensor,
    batch: SamplingBatch,
    masks: Tensor | None = None,
    counts: Tensor | None = None,
    *,
    out: SampledTokens | None = None,
    workspace: Tensor | None = None,
) -> SampledTokens:
    """Draw one allowed token for every row.

    Math:    z = logits in float32; z' = z - (presence + frequency * c) where the row is penalised
             and c = counts[counts_row, v] > 0, each operation rounded to float32. C is the best
             ``limit`` (at most 20) allowed tokens by z', ties (also +0 and -0) to the lower id.
             w = exp((z' - max_C z') / T) in float64. From the best on, stop at the first w below
             min_p, and as soon as the mass kept reaches top_p * (mass of C); the best stays. The
             token is the first whose cumulative weight exceeds u * (kept mass), where u is
             RngKey(seed, position, purpose).uniform(). T <= 0 takes the best and uses no u.
    Shapes:  logits bf16|f16|f32[B, V], row stride may exceed V (the CUDA library takes up to 4,096
             rows and 2**21 tokens); batch B records; masks
             int32[B, W], read only in rows whose record says constrained; counts int32[rows, V],
             read only for rows whose record says penalised; None where no row needs them.
    Effects: ``out`` is written, or new tensors are; ``workspace`` is scratch memory of
             ``reserve_workspace(B, device)``, or new memory. With both given nothing is allocated
             and the launch can be captured in a graph. The current stream is used. A token of
             weight zero (logit minus infinity) is never drawn. Logits of tokens that are not
             allowed may be anything, NaN included.
    Raises:  RowMismatch — logits, batch or counts contradict each other or a row needs what is
             None (on the CPU); InvalidMask — the masks do not fit the logits.
    Source:  specification 7.3 and 7.4; reference contract, section 2.
    """
    check_logits("masked_sampling", logits, 2)
    check_batch("masked_sampling", batch, logits)
    if masks is not None:
        check_masks("masked_sampling", masks, logits)
    if counts is not None:
        check_counts("masked_sampling", counts, logits)
    library = library_for(logits)
    if library is None:
        sampled = sample_columns(Columns(logits, batch, masks, counts))
        return sampled if out is None else out.store(sampled)
    out = SampledTokens.empty(batch.rows, logits.device) if out is None else out
    scratch = reserve_workspace(batch.rows, logits.device) if workspace is None else workspace
    library.masked_sampling(logits, batch.records, masks, counts, *out, scratch, 0)
    return out
