"""A small sampler for scripted programs; shares no code with the product's samplers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ninfer.contract import SamplingParameters


def allowed_ids(words: Sequence[int], token_domain: int) -> list[int]:
    """Return the ids whose bit is set in packed int32 mask words."""
    found = []
    for index, word in enumerate(words):
        bits = word & 0xFFFFFFFF
        while bits:
            low = bits & -bits
            found.append(index * 32 + low.bit_length() - 1)
            bits ^= low
    return [token for token in found if token < token_domain]


def pick(
    logits: Sequence[float],
    allowed: Sequence[int],
    parameters: SamplingParameters,
    counts: Mapping[int, int],
    position: int,
) -> int:
    """Return the token that seed and position decide, out of the allowed ones."""

    def adjusted(token: int) -> float:
        count = counts.get(token, 0)
        penalty = parameters.presence_penalty * (count > 0) + parameters.frequency_penalty * count
        return logits[token] - penalty

    ranked = sorted(allowed, key=lambda token: (-adjusted(token), token))
    if parameters.temperature <= 0:
        return ranked[0]
    ranked = ranked[: parameters.candidate_limit]
    best = adjusted(ranked[0])
    weights = [math.exp((adjusted(t) - best) / parameters.temperature) for t in ranked]
    total = sum(weights)
    kept, mass = [], 0.0
    for token, weight in zip(ranked, weights, strict=True):
        if kept and (weight < parameters.min_p * weights[0] or mass >= parameters.top_p * total):
            break
        kept.append((token, weight))
        mass += weight
    draw = uniform(parameters.seed, position) * mass
    for token, weight in kept:
        draw -= weight
        if draw < 0:
            return token
    return kept[-1][0]


def uniform(seed: int, position: int) -> float:
    """Return a number in [0, 1) that depends on seed and position only."""
    return mix(seed ^ mix(position + 0x1234)) / 2.0**64


def mix(value: int) -> int:
    """Scramble 64 bits."""
    value = (value + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return value ^ (value >> 31)
