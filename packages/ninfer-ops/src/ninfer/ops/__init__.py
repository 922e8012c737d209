"""Masked sampling and speculative acceptance under one contract.

Owns the laws of choosing tokens from logits, and their kernels. Knows no grammar, no model and no
request.
"""

from ninfer.ops.batch import SamplingBatch, SamplingRow
from ninfer.ops.masked_argmax import masked_argmax
from ninfer.ops.masked_sampling import masked_sampling
from ninfer.ops.result import AcceptedTokens, SampledTokens
from ninfer.ops.rng import RngKey
from ninfer.ops.status import RowStatus, require_ok

__all__ = [
    # ops
    "masked_argmax",
    "masked_sampling",
    # records
    "AcceptedTokens",
    "RngKey",
    "RowStatus",
    "SampledTokens",
    "SamplingBatch",
    "SamplingRow",
    "require_ok",
]
