"""Every small round, enumerated: the op licenses what the sequential procedure licenses."""

import itertools
import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer.contract import GREEDY_PRESET, PLACEHOLDER_TOKEN, SamplingParameters
from ninfer.ops import RowStatus
from support.acceptance_cases import Case, accept
from support.devices import DEVICES
from support.sampling_oracle import BrokenLogits, EmptySupport

TINY = 1e-9


def check(cases: list[Case], device: str, dtype: torch.dtype = torch.float32) -> int:
    """Compare rows with the oracle and return how many were decided by no tie."""
    parts = [cases[start : start + 500] for start in range(0, len(cases), 500)]
    return sum(check_batch(part, device, dtype) for part in parts)


def check_batch(cases: list[Case], device: str, dtype: torch.dtype) -> int:
    licensed = accept(cases, device, dtype)
    compared = 0
    for row, case in enumerate(cases):
        status = RowStatus(int(licensed.status[row]))
        try:
            expected = case.expected()
        except EmptySupport:
            assert status is RowStatus.EMPTY_SET, case
            continue
        except BrokenLogits:
            assert status is RowStatus.NON_FINITE, case
            continue
        if expected.margin <= TINY:
            continue
        compared += 1
        assert status is RowStatus.OK, case
        assert int(licensed.accepted[row]) == expected.accepted, case
        length = expected.accepted + 1
        tokens = licensed.tokens[row].tolist()
        assert tokens[:length] == expected.tokens, case
        assert tokens[length:] == [PLACEHOLDER_TOKEN] * (len(tokens) - length), case
    return compared


def subsets(domain: int) -> list[set[int]]:
    return [set(c) for n in range(domain + 1) for c in itertools.combinations(range(domain), n)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("greedy", [True, False])
def test_one_hot_rounds_over_three_tokens(device, greedy):
    logits = [[0.0, 1.0, -1.0], [2.0, 0.5, 0.5]]
    base = GREEDY_PRESET if greedy else SamplingParameters(temperature=1.0, top_p=1.0)
    cases = []
    for seed, (draft, first, second) in enumerate(
        itertools.product([[], [0], [1], [2]], subsets(3), subsets(3))
    ):
        for repeat in range(2):
            parameters = SamplingParameters(base.temperature, 1.0, seed=2 * seed + repeat)
            cases.append(Case(logits, draft, [first, second], parameters))
    assert check(cases, device) > len(cases) // 2


PROPOSALS = [
    {0: 1.0},
    {2: 1.0},
    {0: 0.5, 1: 0.5},
    {0: 0.25, 1: 0.25, 2: 0.5},
    {1: 0.875, 2: 0.125},
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0])
def test_sparse_rounds_over_three_tokens_and_two_drafts(device, temperature):
    logits = [[0.0, 1.0, -1.0], [2.0, 0.5, 0.5], [0.0, 0.0, 0.0]]
    masks: list[set[int] | None] = [None, {0, 1, 2}, {0, 1}, {2}, set()]
    cases = []
    rounds = itertools.product(PROPOSALS, PROPOSALS, masks, masks, masks)
    for seed, (first, second, *allowed) in enumerate(rounds):
        rng = random.Random(seed)
        drafts = [rng.choice(list(first)), rng.choice(list(second))]
        # A row is constrained as a whole; a free position of it allows everything.
        if any(mask is not None for mask in allowed):
            allowed = [{0, 1, 2} if mask is None else mask for mask in allowed]
        parameters = SamplingParameters(temperature, 1.0, seed=seed)
        cases.append(Case(logits, drafts, allowed, parameters, [first, second]))
    assert check(cases, device) > len(cases) // 2


def random_case(rng: random.Random, domain: int, limit: int, sparse: bool) -> Case:
    extent = rng.randint(0, limit)
    logits = [[rng.randint(-24, 24) / 8 for _ in range(domain)] for _ in range(limit + 1)]
    drafts, proposals = [], []
    for index in range(extent):
        listed = rng.sample(range(domain), min(16, domain, rng.randint(1, 16)))
        cuts = sorted(rng.sample(range(1, 64), len(listed) - 1)) if len(listed) > 1 else []
        masses = [(b - a) / 64 for a, b in itertools.pairwise([0, *cuts, 64])]
        proposals.append(dict(zip(listed, masses, strict=True)))
        best = max(range(domain), key=logits[index].__getitem__)
        drafts.append(rng.choice([*listed, best]) if not sparse else rng.choice(listed))
    allowed: list[set[int] | None] = [None] * (limit + 1)
    if rng.random() < 0.7:
        allowed = [set(rng.sample(range(domain), rng.randint(0, domain))) for _ in allowed]
        allowed = [mask | {rng.randrange(domain)} for mask in allowed]
        for index, draft in enumerate(drafts):
            if rng.random() < 0.8:
                allowed[index].add(draft)
    parameters = SamplingParameters(
        temperature=rng.choice([0.0, 0.5, 1.0, 2.0]),
        top_p=rng.choice([0.5, 0.9, 1.0]),
        top_k=rng.choice([0, 1, 3, 20]),
        min_p=rng.choice([0.0, 0.1]),
        presence_penalty=rng.choice([0.0, 1.5, -0.5]),
        frequency_penalty=rng.choice([0.0, 0.25]),
        seed=rng.getrandbits(64),
    )
    counts = {rng.randrange(domain): rng.randint(1, 3) for _ in range(3)}
    return Case(
        logits, drafts, allowed, parameters, proposals if sparse else None, counts,
        old_length=rng.randrange(1 << 20),
    )  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("domain", "limit", "rows"), [(5, 3, 200), (40, 15, 30), (40, 63, 4), (4200, 5, 8)]
)
def test_random_rounds_with_penalties_and_filters(device, sparse, domain, limit, rows):
    rng = random.Random(domain * 100 + limit)
    cases = [random_case(rng, domain, limit, sparse) for _ in range(rows)]
    assert check(cases, device) > rows // 2


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.booleans(), st.integers(1, 6), st.integers(0, 4))
def test_any_round_licenses_what_the_procedure_licenses(seed, sparse, domain, limit):
    rng = random.Random(seed)
    check([random_case(rng, domain, limit, sparse) for _ in range(4)], "cpu")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_logits_give_the_law_of_their_rounded_values(device, dtype):
    rng = random.Random(3)
    assert check([random_case(rng, 33, 4, True) for _ in range(40)], device, dtype) > 20
