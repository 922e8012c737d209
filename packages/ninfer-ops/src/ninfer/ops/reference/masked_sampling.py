"""Masked sampling in torch.

Implements: ninfer.ops.masked_sampling and ninfer.ops.masked_argmax.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ninfer.contract import PLACEHOLDER_TOKEN
from ninfer.ops.reference.columns import Columns, candidates_of
from ninfer.ops.reference.distribution import draw, weights_of
from ninfer.ops.result import SampledTokens
from ninfer.ops.rng import uniforms
from ninfer.ops.status import RowStatus


def sample_columns(columns: Columns) -> SampledTokens:
    """Return one token for every column."""
    candidates = candidates_of(columns)
    batch = columns.batch
    sub_index = torch.zeros_like(batch.seeds)
    uniform = uniforms(batch.seeds, batch.positions, batch.purposes.to(torch.int64), sub_index)
    place = draw(weights_of(candidates, batch), uniform)
    tokens = candidates.ids.gather(1, place.unsqueeze(1)).squeeze(1)
    return SampledTokens(_settled(tokens, candidates.status), candidates.status)


def _settled(tokens: Tensor, status: Tensor) -> Tensor:
    return torch.where(status == RowStatus.OK, tokens, PLACEHOLDER_TOKEN)
