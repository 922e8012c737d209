"""A chi-square goodness-of-fit test without a statistics library."""

import math
from collections.abc import Mapping


def chi_square(observed: Mapping[object, int], law: Mapping[object, float]) -> tuple[float, int]:
    """Return the statistic and its degrees of freedom; outcomes outside the law give infinity.

    Outcomes expected fewer than five times are pooled.
    """
    draws = sum(observed.values())
    if any(count and law.get(outcome, 0.0) == 0 for outcome, count in observed.items()):
        return math.inf, 1
    statistic, cells = 0.0, 0
    pooled_observed, pooled_expected = 0, 0.0
    for outcome, probability in law.items():
        expected, seen = draws * probability, observed.get(outcome, 0)
        if expected < 5:
            pooled_observed, pooled_expected = pooled_observed + seen, pooled_expected + expected
            continue
        statistic += (seen - expected) ** 2 / expected
        cells += 1
    if pooled_expected >= 5:
        statistic += (pooled_observed - pooled_expected) ** 2 / pooled_expected
        cells += 1
    return statistic, max(cells - 1, 1)


def critical_value(freedom: int, z: float = 4.0) -> float:
    """Return the value exceeded with the probability of a normal variable above ``z``.

    Wilson and Hilferty's cube-root approximation; z = 4 is one in 30,000.
    """
    spread = 2 / (9 * freedom)
    return freedom * (1 - spread + z * math.sqrt(spread)) ** 3


def assert_follows(observed: Mapping[object, int], law: Mapping[object, float]) -> None:
    statistic, freedom = chi_square(observed, law)
    assert statistic <= critical_value(freedom), (statistic, freedom, dict(observed))
