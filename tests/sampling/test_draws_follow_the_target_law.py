"""Masked sampling against the double-precision oracle."""

import random
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer.contract import GREEDY_PRESET, RngPurpose, SamplingParameters
from ninfer.ops import RngKey, RowStatus, SamplingBatch, SamplingRow, masked_sampling
from support.devices import DEVICES
from support.packed_masks import packed
from support.sampling_oracle import BrokenLogits, EmptySupport, target
from support.statistics import assert_follows

DTYPES = [torch.float32, torch.bfloat16, torch.float16]


def random_parameters(rng: random.Random) -> SamplingParameters:
    if rng.random() < 0.2:
        return GREEDY_PRESET
    return SamplingParameters(
        temperature=rng.choice([0.05, 0.7, 1.0, 2.0]),
        top_p=rng.choice([0.0, 0.3, 0.8, 0.95, 1.0]),
        top_k=rng.choice([0, 1, 2, 5, 19, 20, 50]),
        min_p=rng.choice([0.0, 0.0, 0.05, 0.5, 1.0]),
        # Eighths, so that adjusted logits are exact in every precision.
        presence_penalty=rng.choice([0.0, 0.0, 1.5, -0.5]),
        frequency_penalty=rng.choice([0.0, 0.0, 0.25, -0.125]),
        seed=rng.getrandbits(64),
    )


def random_allowed(rng: random.Random, domain: int) -> set[int] | None:
    kind = rng.randrange(5)
    if kind == 0:
        return None
    share = [0.0, 0.002, 0.5, 1.0][kind - 1]
    allowed = {token for token in range(domain) if rng.random() < share}
    return allowed or ({rng.randrange(domain)} if rng.random() < 0.8 else set())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("domain", [1, 7, 64, 333, 5003])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_token_is_the_oracles_token(device, domain, dtype):
    rng = random.Random(domain)
    torch.manual_seed(domain)
    rows = 24
    # Quarters: many ties, and exact after every conversion.
    logits = (torch.randn(rows, domain) * 8).round().clamp(-60, 60) / 4
    logits = torch.where(torch.rand(rows, domain) < 0.01, -torch.inf, logits).to(dtype)
    counts = torch.where(torch.rand(rows, domain) < 0.2, torch.randint(1, 5, (rows, domain)), 0)
    parameters = [random_parameters(rng) for _ in range(rows)]
    allowed = [random_allowed(rng, domain) for _ in range(rows)]
    position = [rng.randrange(1 << 20) for _ in range(rows)]
    batch = SamplingBatch.pack(
        [
            SamplingRow(parameters[b], position[b], RngPurpose.DECODE, allowed[b] is not None, b)
            for b in range(rows)
        ],
        device,
    )
    sampled = masked_sampling(
        logits.to(device), batch, packed(allowed, domain).to(device), counts.int().to(device)
    )
    compared = 0
    for b in range(rows):
        status = RowStatus(int(sampled.status[b]))
        table = {t: int(c) for t, c in enumerate(counts[b].tolist()) if c}
        try:
            law = target(logits[b].tolist(), parameters[b], allowed[b], table)
        except EmptySupport:
            assert status is RowStatus.EMPTY_SET
            continue
        except BrokenLogits:
            assert status is RowStatus.NON_FINITE
            continue
        assert status is RowStatus.OK
        u = RngKey(parameters[b].seed, position[b], RngPurpose.DECODE).uniform()
        if law.margin(u) > 1e-9:
            assert int(sampled.tokens[b]) == law.at(u), (b, parameters[b])
            compared += 1
    assert compared >= rows // 2


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "parameters",
    [
        SamplingParameters(temperature=1.0, top_p=1.0),
        SamplingParameters(temperature=0.6, top_p=0.9, top_k=12),
        SamplingParameters(temperature=1.5, top_p=0.95, min_p=0.1),
    ],
    ids=["plain", "top-p and top-k", "min-p before top-p"],
)
def test_frequencies_follow_the_law(device, parameters):
    # 40,000 draws: a token of probability 0.1 that is off by 8 % of it is found with power 0.9.
    draws, domain = 40_000, 40
    rng = random.Random(5)
    row = [rng.randrange(-12, 12) / 4 for _ in range(domain)]
    allowed = set(rng.sample(range(domain), 25))
    law = target(row, parameters, allowed)
    rows = [SamplingRow(parameters, position, constrained=True) for position in range(draws)]
    seen: Counter[int] = Counter()
    for start in range(0, draws, 4000):
        part = rows[start : start + 4000]
        logits = torch.tensor([row]).expand(len(part), -1).contiguous().to(device)
        masks = packed([allowed], domain).expand(len(part), -1).contiguous().to(device)
        tokens = masked_sampling(logits, SamplingBatch.pack(part, device), masks).tokens
        seen.update(tokens.tolist())
    assert_follows(seen, dict(zip(law.tokens, law.probabilities, strict=True)))


@settings(max_examples=60)
@given(
    row=st.lists(st.integers(-40, 40), min_size=1, max_size=70),
    share=st.sets(st.integers(0, 69)),
    temperature=st.floats(0.0, 2.0),
    top_p=st.floats(0.0, 1.0),
    min_p=st.floats(0.0, 1.0),
    top_k=st.integers(0, 25),
    seed=st.integers(0, 2**64 - 1),
)
def test_any_parameters_give_an_allowed_token_of_the_support(
    row, share, temperature, top_p, min_p, top_k, seed
):
    logits = [value / 8 for value in row]
    allowed = {token for token in share if token < len(row)}
    parameters = SamplingParameters(temperature, top_p, top_k, min_p, seed=seed)
    batch = SamplingBatch.pack([SamplingRow(parameters, 3, constrained=True)])
    sampled = masked_sampling(torch.tensor([logits]), batch, packed([allowed], len(row)))
    if not allowed:
        assert int(sampled.status[0]) == RowStatus.EMPTY_SET
        return
    law = target(logits, parameters, allowed)
    u = RngKey(seed, 3, RngPurpose.DECODE).uniform()
    token = int(sampled.tokens[0])
    assert token in law.tokens
    assert law.margin(u) <= 1e-9 or token == law.at(u)
