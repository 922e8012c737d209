"""The truncated target distribution over ordered candidates, and draws from weights."""

from __future__ import annotations

import torch
from torch import Tensor

from ninfer.ops.batch import SamplingBatch
from ninfer.ops.reference.candidates import Candidates


def weights_of(candidates: Candidates, batch: SamplingBatch) -> Tensor:
    """Return the unnormalised weight of every candidate that survives.

    Math:   w = exp((z - z0) / T) for the first ``limit`` candidates; those with w < min_p go; then
            those whose predecessors already hold top_p of the mass before min-p; the best always
            stays. A greedy row keeps its best alone.
    Shapes: float64[N, 20]; zero at every place that cannot be drawn.
    """
    greedy = batch.temperatures <= 0
    temperature = torch.where(greedy, 1.0, batch.temperatures).unsqueeze(1)
    values = candidates.values.to(torch.float64)
    place = torch.arange(values.shape[1], device=values.device)
    limit = torch.where(greedy, 1, batch.limits).unsqueeze(1)
    exists = (candidates.ids >= 0) & (place < limit)
    weights = torch.exp((values - values[:, :1]) / temperature)
    weights = torch.where(exists, weights, 0.0)
    before = weights.cumsum(1)
    top_p = batch.top_p.unsqueeze(1)
    inside = before - weights < top_p * before[:, -1:]
    # The sum of the predecessors, not a difference: subtraction would round.
    inside[:, 1:] = before[:, :-1] < top_p * before[:, -1:]
    inside = inside | (top_p >= 1)
    kept = inside & (weights >= batch.min_p.unsqueeze(1))
    kept[:, 0] = True
    return torch.where(kept, weights, 0.0)


def draw(weights: Tensor, uniform: Tensor) -> Tensor:
    """Return the place that the inverse CDF gives for each row.

    Math:   the first i with w0 + ... + wi > u * (w0 + ... + wn); 0 where there is no mass.
    Shapes: weights float64[N, C]; uniform float64[N]; returns int64[N].
    """
    mass = weights.cumsum(1)
    beyond = mass > (uniform * mass[:, -1]).unsqueeze(1)
    return beyond.to(torch.uint8).argmax(1)
