"""The law of one sampling step in double precision, straight from the specification.

Shares no code with the ops. Everything is a plain loop over plain numbers.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ninfer.contract import SamplingParameters


class EmptySupport(Exception):
    """No token is allowed."""


class BrokenLogits(Exception):
    """The best allowed logit is not a finite number."""


@dataclass(frozen=True)
class Support:
    """Tokens that can be drawn, best first, with their probabilities."""

    tokens: list[int]
    probabilities: list[float]

    def probability(self, token: int) -> float:
        return dict(zip(self.tokens, self.probabilities, strict=True)).get(token, 0.0)

    def at(self, u: float) -> int:
        """Return the token that the inverse CDF gives."""
        return inverse_cdf(self.tokens, self.probabilities, u)

    def margin(self, u: float) -> float:
        """Return how far u is from the nearest edge between two tokens."""
        return edge_margin(self.probabilities, u)


def inverse_cdf(tokens: Sequence[int], masses: Sequence[float], u: float) -> int:
    total = math.fsum(masses)
    reached = 0.0
    for token, mass in zip(tokens, masses, strict=True):
        reached += mass
        if reached > u * total:
            return token
    return tokens[0]


def edge_margin(masses: Sequence[float], u: float) -> float:
    total = math.fsum(masses)
    if total == 0:
        return 1.0
    reached, nearest = 0.0, 1.0
    for mass in masses[:-1]:
        reached += mass
        nearest = min(nearest, abs(reached / total - u))
    return nearest


def target(
    logits: Sequence[float],
    parameters: SamplingParameters,
    allowed: Collection[int] | None = None,
    counts: Mapping[int, int] | None = None,
) -> Support:
    """Return the law that specification 7.3 and 7.4 give."""
    tokens = range(len(logits)) if allowed is None else sorted(allowed)
    if not tokens:
        raise EmptySupport
    adjusted = {}
    for token in tokens:
        count = (counts or {}).get(token, 0)
        penalty = parameters.frequency_penalty * count
        if count > 0:
            penalty += parameters.presence_penalty
        adjusted[token] = logits[token] - penalty
    if any(math.isnan(value) for value in adjusted.values()):
        raise BrokenLogits
    best = max(adjusted.values())
    if math.isinf(best):
        raise BrokenLogits
    ranked = sorted(adjusted, key=lambda token: (-adjusted[token], token))
    if parameters.temperature <= 0:
        return Support([ranked[0]], [1.0])
    keep = parameters.top_k if 0 < parameters.top_k < 20 else 20
    ranked = [token for token in ranked[:keep] if adjusted[token] > -math.inf]
    weights = [math.exp((adjusted[t] - best) / parameters.temperature) for t in ranked]
    return _truncate(ranked, weights, parameters)


def _truncate(tokens: list[int], weights: list[float], parameters: SamplingParameters) -> Support:
    whole = math.fsum(weights)
    kept: list[int] = []
    mass = 0.0
    for token, weight in zip(tokens, weights, strict=True):
        if kept and weight < parameters.min_p * weights[0]:
            break
        if kept and parameters.top_p < 1 and mass >= parameters.top_p * whole:
            break
        kept.append(token)
        mass += weight
    return Support(kept, [weight / mass for weight in weights[: len(kept)]])
