"""Masked sampling and speculative acceptance under one contract.

Owns the laws of choosing tokens from logits, and their kernels. Knows no grammar, no model and no
request.
"""

from ninfer.ops.batch import SamplingBatch, SamplingRow
from ninfer.ops.masked_argmax import masked_argmax
from ninfer.ops.masked_sampling import masked_sampling
from ninfer.ops.native import Capabilities, capabilities, reserve_workspace
from ninfer.ops.proposal import PROPOSAL_CANDIDATES, SparseProposal
from ninfer.ops.result import AcceptedTokens, SampledTokens
from ninfer.ops.rng import RngKey, uniforms
from ninfer.ops.speculative_acceptance import speculative_acceptance
from ninfer.ops.status import RowStatus, require_ok
from ninfer.ops.token_counts import count_tokens

__all__ = [
    # ops
    "masked_argmax",
    "masked_sampling",
    "speculative_acceptance",
    "count_tokens",
    "capabilities",
    "reserve_workspace",
    "uniforms",
    # records
    "AcceptedTokens",
    "Capabilities",
    "PROPOSAL_CANDIDATES",
    "RngKey",
    "RowStatus",
    "SampledTokens",
    "SamplingBatch",
    "SamplingRow",
    "SparseProposal",
    "require_ok",
]
