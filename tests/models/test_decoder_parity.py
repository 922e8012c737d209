"""A decoder computes what transformers computes, however the columns are batched."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from ninfer.runtime.loading import load_model
from ninfer.runtime.models.decoder import Decoder
from ninfer.runtime.models.forward_batch import RowInput, forward_batch
from ninfer.runtime.models.kv_pool import KvPool, SlotMap
from support.paged_rows import paged
from support.parity import TOLERANCE, assert_same, random_tokens
from support.tiny_models import SHAPES, VOCAB_ROWS, write_checkpoint


class Case:
    """One random model here and in transformers."""

    def __init__(self, name: str, folder: Path) -> None:
        from transformers import AutoModelForCausalLM

        path = write_checkpoint(folder, name, seed=len(name))
        self.decoder: Decoder = load_model(path, dtype=torch.float32).decoder
        self.oracle = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
        self.pool: KvPool = self.decoder.new_pool(16)

    def expected(self, tokens: list[int]) -> torch.Tensor:
        with torch.no_grad():
            return self.oracle(torch.tensor([tokens])).logits[0]

    def logits(self, *rows: RowInput) -> torch.Tensor:
        hidden = self.decoder.forward(forward_batch(rows, self.pool), self.pool)
        return self.decoder.logits(hidden)


@pytest.fixture(scope="module", params=sorted(SHAPES))
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    torch.set_num_threads(1)
    return Case(request.param, tmp_path_factory.mktemp("checkpoint"))


def test_a_whole_prompt_has_the_same_logits(case: Case) -> None:
    tokens = random_tokens(150, 1)
    assert_same(case.logits(RowInput(tokens, 0, SlotMap(range(3)))), case.expected(tokens))


def test_a_prompt_in_chunks_has_the_same_logits(case: Case) -> None:
    tokens, slots = random_tokens(130, 2), SlotMap([4, 5, 6])
    parts = [
        case.logits(RowInput(tokens[begin : begin + 47], begin, slots))
        for begin in range(0, len(tokens), 47)
    ]
    assert_same(torch.cat(parts), case.expected(tokens))


def test_single_steps_have_the_same_logits(case: Case) -> None:
    tokens, slots = random_tokens(20, 3), SlotMap([7])
    steps = [case.logits(RowInput([token], i, slots)) for i, token in enumerate(tokens)]
    assert_same(torch.cat(steps), case.expected(tokens))


def test_rows_of_any_length_share_one_pass_over_scattered_pages(case: Case) -> None:
    prompts = [random_tokens(count, 10 + count) for count in (70, 1, 129, 33)]
    tables = [SlotMap([9, 2]), SlotMap([0]), SlotMap([15, 3, 11]), SlotMap([5, 6])]
    for prompt, table in zip(prompts, tables, strict=True):
        if len(prompt) > 1:
            case.logits(RowInput(prompt[:-1], 0, table))
    rows = [
        RowInput(prompt[-1:], len(prompt) - 1, table)
        for prompt, table in zip(prompts, tables, strict=True)
    ]
    expected = torch.stack([case.expected(prompt)[-1] for prompt in prompts])
    assert_same(case.logits(*rows), expected)


def test_wrong_drafts_leave_no_trace(case: Case) -> None:
    tokens, slots = random_tokens(90, 4), SlotMap([1, 13])
    case.logits(RowInput(tokens[:80], 0, slots))
    wrong = [(token + 7) % VOCAB_ROWS for token in tokens[81:86]]
    drafted = case.logits(RowInput([tokens[80], *wrong], 80, slots))
    assert_same(drafted, case.expected([*tokens[:81], *wrong])[80:])
    verified = case.logits(RowInput(tokens[81:90], 81, slots))
    assert_same(verified, case.expected(tokens)[81:])


@pytest.mark.parametrize("columns", [1, 4])
def test_rows_gathered_into_one_product_have_the_same_logits(case: Case, columns: int) -> None:
    prompts = [random_tokens(count, 30 + count) for count in (66, 9, 120)]
    tables = [SlotMap([9, 2]), SlotMap([0]), SlotMap([15, 3])]
    rows = []
    for prompt, table in zip(prompts, tables, strict=True):
        start = len(prompt) - columns
        case.logits(RowInput(prompt[:start], 0, table))
        rows.append(RowInput(prompt[start:], start, table))
    batch = paged(rows, pages=4)
    found = case.decoder.logits(case.decoder.forward(batch, case.pool))
    assert_same(found, torch.cat([case.expected(prompt)[-columns:] for prompt in prompts]))


def test_columns_of_mixed_rows_are_independent_of_their_order(case: Case) -> None:
    prompts = [random_tokens(count, 20 + count) for count in (40, 5, 17)]
    tables = [SlotMap([0]), SlotMap([1]), SlotMap([2])]
    rows = [RowInput(p, 0, t) for p, t in zip(prompts, tables, strict=True)]
    forward = case.logits(*rows).split([len(p) for p in prompts])
    backward = case.logits(*reversed(rows)).split([len(p) for p in reversed(prompts)])
    for found, other in zip(forward, reversed(backward), strict=True):
        assert_same(found, other)


def test_tapped_streams_are_those_after_the_named_layers(case: Case) -> None:
    tokens, slots = random_tokens(40, 4), SlotMap([8])
    with torch.no_grad():
        known = case.oracle(torch.tensor([tokens]), output_hidden_states=True).hidden_states
    batch = forward_batch([RowInput(tokens, 0, slots)], case.pool)
    states = case.decoder.states(batch, case.pool, (0, 1))
    # Their last state is normed already, so the last layer's stream cannot be compared.
    expected = torch.cat((known[1][0], known[2][0]), dim=-1)
    torch.testing.assert_close(states.features, expected, atol=TOLERANCE, rtol=TOLERANCE)
