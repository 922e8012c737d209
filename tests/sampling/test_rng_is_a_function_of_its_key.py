"""The counter RNG: same key, same number; every part of the key matters."""

from collections import Counter

import torch
from hypothesis import given
from hypothesis import strategies as st

from ninfer.contract import RngPurpose
from ninfer.ops import RngKey, uniforms
from support.statistics import assert_follows

keys = st.builds(
    RngKey,
    seed=st.integers(0, 2**64 - 1),
    position=st.integers(0, 2**40 - 1),
    purpose=st.sampled_from(RngPurpose),
    sub_index=st.integers(0, 2**16 - 1),
)


def signed_fields(key: RngKey) -> tuple[int, ...]:
    seed = key.seed - 2**64 if key.seed >= 2**63 else key.seed
    return seed, key.position, key.purpose, key.sub_index


@given(st.lists(keys, min_size=1, max_size=8))
def test_tensors_give_the_numbers_of_the_keys(listed):
    columns = [
        torch.tensor(column, dtype=torch.int64)
        for column in zip(*map(signed_fields, listed), strict=True)
    ]
    assert uniforms(*columns).tolist() == [key.uniform() for key in listed]


def test_bits_nest_the_published_generator_twice():
    # The published splitmix64 seeded with 1234567 begins with these two numbers.
    first, second = 6457827717110365317, 3203168211198807973
    step = 0x9E3779B97F4A7C15
    assert splitmix64(1234567) == first
    assert splitmix64(1234567 + step) == second
    assert RngKey(1234567, 0, RngPurpose.PREFILL).bits() == splitmix64(first)
    key = RngKey(1234567, 9, RngPurpose.SPECULATIVE_BONUS, 3)
    assert key.bits() == splitmix64(first ^ (9 + (4 << 40) + (3 << 48)))


def splitmix64(state: int) -> int:
    value = (state + 0x9E3779B97F4A7C15) % 2**64
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB % 2**64
    return value ^ (value >> 31)


def test_each_part_of_the_key_changes_the_number():
    base = RngKey(7, 100, RngPurpose.DECODE)
    others = [
        base._replace(seed=8),
        base._replace(position=101),
        base._replace(purpose=RngPurpose.SPECULATIVE_ACCEPT),
        base._replace(sub_index=1),
    ]
    assert len({key.bits() for key in [base, *others]}) == 5


def test_numbers_are_uniform_and_neighbours_are_independent():
    # 100,000 pairs in 8 x 8 cells: a cell off by 6 % of its share is found with power over 0.99.
    count = 100_000
    position = torch.arange(count)
    seeds, decode = torch.full((count,), 42), torch.full((count,), int(RngPurpose.DECODE))
    numbers = uniforms(seeds, position, decode, torch.zeros_like(position))
    assert 0 <= float(numbers.min())
    assert float(numbers.max()) < 1
    cells = (numbers * 8).long()
    pairs = Counter(zip(cells[:-1].tolist(), cells[1:].tolist(), strict=True))
    assert_follows(pairs, {(a, b): 1 / 64 for a in range(8) for b in range(8)})
    across = uniforms(position, seeds, decode, torch.zeros_like(position))
    assert_follows(Counter((across * 8).long().tolist()), dict.fromkeys(range(8), 1 / 8))
