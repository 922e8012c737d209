"""A hybrid computes what transformers computes, and only a commit changes its states."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from ninfer.contract import IntegrityError
from ninfer.runtime.loading import load_model
from ninfer.runtime.models.decoder import Decoder
from ninfer.runtime.models.forward_batch import RowInput, forward_batch
from ninfer.runtime.models.kv_pool import KvPool, SlotMap
from ninfer.runtime.models.recurrent_pool import RecurrentPool
from support.hybrid_models import write_hybrid
from support.paged_rows import paged
from support.parity import TOLERANCE, assert_same, random_tokens

ROUNDS = 1000 if os.environ.get("NINFER_SLOW") == "1" else 200
VARIANTS: dict[str, dict[str, object]] = {
    "text": {},
    "tied": {"tie_word_embeddings": True, "linear_num_value_heads": 2, "linear_conv_kernel_dim": 3},
    "interval": {
        "layer_types": ["linear_attention"] * 3 + ["full_attention"],
        "num_hidden_layers": 4,
    },
}


class Case:
    """One random model here and in transformers."""

    def __init__(self, folder: Path, overrides: dict[str, object]) -> None:
        from transformers import Qwen3_5ForCausalLM

        path = write_hybrid(folder, seed=3, **overrides)
        self.decoder: Decoder = load_model(path, dtype=torch.float32).decoder
        self.oracle, info = Qwen3_5ForCausalLM.from_pretrained(
            path, dtype=torch.float32, output_loading_info=True
        )
        assert not info["missing_keys"]
        self.oracle.eval()
        self.pool: KvPool = self.decoder.new_pool(24, rows=6)

    @property
    def states(self) -> RecurrentPool:
        assert self.pool.recurrent is not None
        return self.pool.recurrent

    def expected(self, tokens: list[int]) -> torch.Tensor:
        with torch.no_grad():
            return self.oracle(torch.tensor([tokens])).logits[0]

    def logits(self, *rows: RowInput, is_whole: bool = False) -> torch.Tensor:
        batch = forward_batch(rows, self.pool, is_whole=is_whole)
        return self.decoder.logits(self.decoder.forward(batch, self.pool))

    def prefill(self, tokens: list[int], table: SlotMap, pool_row: int) -> torch.Tensor:
        self.states.reset(pool_row)
        found = self.logits(RowInput(tokens, 0, table, pool_row), is_whole=True)
        self.states.commit_all()
        return found


@pytest.fixture(scope="module", params=sorted(VARIANTS))
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    torch.set_num_threads(1)
    return Case(tmp_path_factory.mktemp("hybrid"), VARIANTS[request.param])


def test_a_whole_prompt_has_the_same_logits(case: Case) -> None:
    tokens = random_tokens(150, 1)
    assert_same(case.prefill(tokens, SlotMap(range(3)), 0), case.expected(tokens))


@pytest.mark.parametrize("chunk", [1, 2, 47, 64])
def test_a_prompt_in_chunks_has_the_same_logits(case: Case, chunk: int) -> None:
    tokens, table = random_tokens(130 if chunk > 2 else 20, 2), SlotMap([4, 5, 6])
    case.states.reset(3)
    parts = []
    for begin in range(0, len(tokens), chunk):
        row = RowInput(tokens[begin : begin + chunk], begin, table, 3)
        parts.append(case.logits(row, is_whole=True))
        case.states.commit_all()
    assert_same(torch.cat(parts), case.expected(tokens))


def test_single_steps_have_the_same_logits(case: Case) -> None:
    tokens, table = random_tokens(90, 3), SlotMap([9, 7])
    case.prefill(tokens[:70], table, 1)
    steps = []
    for place in range(70, 90):
        steps.append(case.logits(RowInput([tokens[place]], place, table, 1)))
        case.states.commit([1])
    assert_same(torch.cat(steps), case.expected(tokens)[70:])


@pytest.mark.parametrize("counts", [(8, 8, 8, 8), (1, 16, 5), (16, 2, 1, 9)])
def test_rows_of_any_length_verify_in_shuffled_rows_and_pages(
    case: Case, counts: tuple[int, ...]
) -> None:
    starts = (70, 3, 120, 33)[: len(counts)]
    tables = [SlotMap([9, 2]), SlotMap([0]), SlotMap([15, 3, 11]), SlotMap([5, 6])]
    prompts = [random_tokens(s + c, 10 + s) for s, c in zip(starts, counts, strict=True)]
    rows = []
    for prompt, start, table, pool_row in zip(prompts, starts, tables, (4, 0, 5, 2), strict=False):
        case.prefill(prompt[:start], table, pool_row)
        rows.append(RowInput(prompt[start:], start, table, pool_row))
    found = case.logits(*rows).split(list(counts))
    for part, prompt, start in zip(found, prompts, starts, strict=True):
        assert_same(part, case.expected(prompt)[start:])
    case.states.drop()


@pytest.mark.parametrize("columns", [1, 4])
def test_rows_gathered_into_one_product_have_the_same_logits(case: Case, columns: int) -> None:
    prompts = [random_tokens(count, 30 + count) for count in (66, 9, 120)]
    tables = [SlotMap([9, 2]), SlotMap([0]), SlotMap([15, 3])]
    rows = []
    for prompt, table, pool_row in zip(prompts, tables, (2, 5, 1), strict=True):
        start = len(prompt) - columns
        case.prefill(prompt[:start], table, pool_row)
        rows.append(RowInput(prompt[start:], start, table, pool_row))
    batch = paged(rows, pages=4, is_hybrid=True)
    found = case.decoder.logits(case.decoder.forward(batch, case.pool))
    assert_same(found, torch.cat([case.expected(prompt)[-columns:] for prompt in prompts]))


def test_a_pass_changes_no_state_and_an_empty_prefix_neither(case: Case) -> None:
    tokens, table = random_tokens(60, 5), SlotMap([8])
    case.prefill(tokens[:50], table, 2)
    before = case.states.save(2)
    case.logits(RowInput(random_tokens(7, 6), 50, table, 2))
    case.states.drop()
    case.logits(RowInput(random_tokens(9, 7), 50, table, 2))
    case.states.commit([0])
    after = case.states.save(2)
    assert torch.equal(before.tails, after.tails)
    assert torch.equal(before.states, after.states)
    assert_same(case.logits(RowInput(tokens[50:], 50, table, 2)), case.expected(tokens)[50:])


def test_a_saved_row_continues_in_another_row(case: Case) -> None:
    tokens, table = random_tokens(80, 8), SlotMap([12, 13])
    case.prefill(tokens[:70], table, 0)
    saved = case.states.save(0)
    assert saved.host_bytes == case.states.row_bytes
    case.prefill(random_tokens(30, 9), SlotMap([1]), 0)
    case.states.restore(4, saved)
    assert_same(case.logits(RowInput(tokens[70:], 70, table, 4)), case.expected(tokens)[70:])


def test_commits_need_the_records_of_a_pass(case: Case) -> None:
    case.states.drop()
    with pytest.raises(IntegrityError, match="no pass"):
        case.states.commit([1])
    case.logits(RowInput([1, 2], 0, SlotMap([0]), 0))
    with pytest.raises(IntegrityError, match="1 rows, 2 prefixes"):
        case.states.commit([1, 1])
    case.logits(RowInput([1, 2], 0, SlotMap([0]), 0), is_whole=True)
    with pytest.raises(IntegrityError, match="stays as a whole"):
        case.states.commit([1])
    case.logits(RowInput([1, 2], 0, SlotMap([0]), 0))
    with pytest.raises(IntegrityError, match="any prefix"):
        case.states.commit_all()


class RoundRow:
    """A sequence that keeps random prefixes of what its rounds wrote."""

    def __init__(self, case: Case, pool_row: int, pages: list[int], seed: int) -> None:
        self.pool_row = pool_row
        self.table = SlotMap(pages)
        self.tokens = random_tokens(5 + seed, 40 + seed)
        case.prefill(self.tokens, self.table, pool_row)

    @property
    def is_full(self) -> bool:
        return len(self.tokens) > self.table.capacity_tokens - 16


def test_random_partial_commits_equal_a_fresh_pass(case: Case) -> None:
    generator = torch.Generator().manual_seed(11)

    def draw(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (1,), generator=generator))

    tables = [[0, 9, 2], [15, 3, 11], [5, 6, 7], [20, 1, 22]]
    rows = [RoundRow(case, 5 - r, tables[r], r) for r in range(4)]
    for number in range(ROUNDS):
        columns = [random_tokens(draw(1, 16), 1000 * number + r) for r in range(4)]
        order = torch.randperm(4, generator=generator).tolist()
        found = case.logits(
            *(
                RowInput(columns[r], len(rows[r].tokens), rows[r].table, rows[r].pool_row)
                for r in order
            )
        )
        accepted = [draw(0, len(columns[r])) for r in order]
        case.states.commit(accepted)
        if number % 20 == 19:
            parts = dict(zip(order, found.split([len(columns[r]) for r in order]), strict=True))
            for r, row in enumerate(rows):
                expected = case.expected([*row.tokens, *columns[r]])[len(row.tokens) :]
                assert_same(parts[r], expected)
        for r, count in zip(order, accepted, strict=True):
            rows[r].tokens += columns[r][:count]
            if rows[r].is_full:
                rows[r] = RoundRow(case, rows[r].pool_row, tables[r], draw(0, 30))
    _states_equal_fresh_ones(case, rows)


def _states_equal_fresh_ones(case: Case, rows: list[RoundRow]) -> None:
    """Compare every row's state with that of one pass over the same tokens."""
    fresh = case.decoder.new_pool(4, rows=1)
    assert fresh.recurrent is not None
    for row in rows:
        fresh.recurrent.reset(0)
        batch = forward_batch([RowInput(row.tokens, 0, SlotMap(range(4)), 0)], fresh, is_whole=True)
        case.decoder.forward(batch, fresh)
        fresh.recurrent.commit_all()
        expected, found = fresh.recurrent.save(0), case.states.save(row.pool_row)
        torch.testing.assert_close(found.tails, expected.tails, atol=TOLERANCE, rtol=TOLERANCE)
        torch.testing.assert_close(found.states, expected.states, atol=TOLERANCE, rtol=TOLERANCE)
