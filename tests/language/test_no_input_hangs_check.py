"""No constraint of 64 KiB takes long or much to check, whatever it is: it is answered or refused.

``tools/check_fuzz.py`` looks for more of the same for as long as one likes.
"""

from __future__ import annotations

import os
from random import Random

import pytest

from support.heavy import FAMILIES, SOURCE_BYTES, heavy
from support.heavy.trial import MEMORY_BYTES, SECONDS, cost_of

# Counted limits keep the work; a busy machine takes longer for it.
BUSY = 3
SLOW = bool(os.environ.get("NINFER_SLOW"))
ROUNDS = 12
SIZES = (150, 1_000, 5_000, 20_000, 60_000)


def kept(kind, family, seed, size):
    case = heavy(kind, family, seed, size) or heavy(kind, family, seed, size // 4)
    if case is None:
        return True
    assert case.source_bytes <= SOURCE_BYTES
    cost = cost_of(case.constraint, "check")
    assert cost.outcome == "answered" or cost.outcome.startswith("refused "), (case[:4], cost)
    assert cost.seconds <= BUSY * SECONDS, (case[:4], cost)
    assert cost.memory_bytes <= MEMORY_BYTES, (case[:4], cost)
    return True


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "family"), FAMILIES)
def test_cases_of_every_family_are_answered_or_refused_in_time(kind, family):
    if SLOW:
        assert all(kept(kind, family, seed, size) for seed in range(ROUNDS) for size in SIZES)
    else:
        assert kept(kind, family, 1, Random(f"{kind} {family}").choice(SIZES))
