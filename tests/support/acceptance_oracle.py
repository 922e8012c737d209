"""Speculative acceptance as a plain sequential procedure, and its exact law.

Shares no code with the ops. ``q`` None means that the draft was proposed with certainty.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from support.sampling_oracle import Support, edge_margin, inverse_cdf

Proposal = Mapping[int, float]
Column = Callable[[], Support]


@dataclass(frozen=True)
class Outcome:
    """What a round licenses, and how near any comparison was to a tie."""

    tokens: list[int]
    accepted: int
    margin: float


def acceptance_probability(p: Support, draft: int, q: Proposal | None) -> float:
    """Return the probability that a draft passes, min(1, p / q)."""
    proposed = 1.0 if q is None else q.get(draft, 0.0)
    wanted = p.probability(draft)
    if wanted == 0:
        return 0.0
    return 1.0 if proposed == 0 else min(1.0, wanted / proposed)


def residual(p: Support, draft: int, q: Proposal | None) -> list[float]:
    """Return the unnormalised law of the correction over the support of p."""
    if q is None:
        pairs = zip(p.tokens, p.probabilities, strict=True)
        return [0.0 if token == draft else mass for token, mass in pairs]
    pairs = zip(p.tokens, p.probabilities, strict=True)
    return [max(mass - q.get(token, 0.0), 0.0) for token, mass in pairs]


def run(
    columns: Sequence[Column],
    drafts: Sequence[int],
    proposals: Sequence[Proposal] | None,
    accept_uniforms: Sequence[float],
    last_uniforms: Callable[[int, bool], float],
) -> Outcome:
    """Verify drafts one after another with given random numbers.

    ``columns[i]()`` is the target after drafts[:i]; it may raise what the sampling oracle raises.
    ``last_uniforms(index, rejected)`` gives the number of the correction or bonus.
    """
    margin = 1.0
    for index, draft in enumerate(drafts):
        p = columns[index]()
        q = None if proposals is None else proposals[index]
        chance, u = acceptance_probability(p, draft, q), accept_uniforms[index]
        if 0 < chance < 1:
            margin = min(margin, abs(u - chance))
        if u < chance:
            continue
        masses, u = residual(p, draft, q), last_uniforms(index, True)
        margin = min(margin, edge_margin(masses, u), _unsure_mass(masses))
        token = inverse_cdf(p.tokens, masses, u)
        return Outcome([*drafts[:index], token], index, margin)
    p, u = columns[len(drafts)](), last_uniforms(len(drafts), False)
    margin = min(margin, p.margin(u))
    return Outcome([*drafts, p.at(u)], len(drafts), margin)


def _unsure_mass(masses: Sequence[float]) -> float:
    # A residual that is zero on paper can hold a rounding error, and then decide the draw.
    total = math.fsum(masses)
    return 1.0 if total == 0 or total > 1e-6 else total


def law(
    columns: Sequence[Support], drafts: Sequence[int], proposals: Sequence[Proposal] | None
) -> dict[tuple[int, ...], float]:
    """Return the probability of every licensed sequence for these drafts."""
    outcomes: dict[tuple[int, ...], float] = {}
    reached = 1.0
    for index, draft in enumerate(drafts):
        p = columns[index]
        q = None if proposals is None else proposals[index]
        chance = acceptance_probability(p, draft, q)
        masses = residual(p, draft, q)
        total = math.fsum(masses)
        for token, mass in zip(p.tokens, masses, strict=True):
            if mass:
                key = (*drafts[:index], token)
                outcomes[key] = outcomes.get(key, 0.0) + reached * (1 - chance) * mass / total
        reached *= chance
    last = columns[len(drafts)]
    for token, mass in zip(last.tokens, last.probabilities, strict=True):
        outcomes[(*drafts, token)] = reached * mass
    return {key: mass for key, mass in outcomes.items() if mass > 0}
