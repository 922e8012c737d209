"""What a drafter says about the tokens it proposed."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

PROPOSAL_CANDIDATES = 16
"""Candidates of a sparse proposal distribution at most."""


class SparseProposal(NamedTuple):
    """The distribution q that each draft was really drawn from.

    Shapes: ids int64[B, K, Q] with Q <= 16, distinct where q > 0; q float32[B, K, Q], normalised
            over Q. Tokens that are not listed have q = 0.
    """

    ids: Tensor
    q: Tensor
