"""Prefix reuse saves work and changes no answer; cached prefixes give way to live rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ninfer.contract import PrefixPath, SamplingParameters, SequenceRequest
from ninfer.runtime.loading import LoadedModel
from ninfer.runtime.program import TorchProgram
from support.program_runs import (
    RowSets,
    continue_rows,
    open_row,
    prefill,
    program,
    prompt,
    solo,
    start,
    tiny_model,
)

SAMPLED = SamplingParameters(temperature=0.9, top_p=0.95, presence_penalty=0.6, seed=3)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return tiny_model(tmp_path_factory.mktemp("model"), "qwen2")


def answered(owner: TorchProgram, token_ids: tuple[int, ...], tokens: int = 4) -> list[int]:
    """Answer a prompt and release it, so that it is cached."""
    row = open_row(owner, token_ids, reuse=True)
    answer = start(owner, row) + continue_rows(owner, [row], tokens - 1)[0]
    owner.release(row)
    return answer


def test_the_same_prompt_computes_nothing_and_chooses_for_itself(model: LoadedModel) -> None:
    owner = program(model)
    text = prompt(70, 0)
    cached = answered(owner, text)
    opened = owner.open(SequenceRequest(text, replace(SAMPLED, seed=99)))
    assert opened.reused_tokens == 70
    assert opened.prefix_path is PrefixPath.CHECKPOINT
    allowed = {t for t in range(200) if t != cached[0]}
    step = owner.prefill(opened.sequence, RowSets(allowed))
    assert step.computed_tokens == 0
    assert step.batch is not None
    assert step.batch.rows[0].tokens[0] in allowed
    owner.abort(step.batch)
    answer = start(owner, opened.sequence)
    answer += continue_rows(owner, [opened.sequence], 6)[0]
    assert answer == solo(model, text, 7, replace(SAMPLED, seed=99))


@pytest.mark.parametrize("shared", [1, 63, 64, 65, 90])
def test_a_shared_beginning_is_not_computed_again(model: LoadedModel, shared: int) -> None:
    owner = program(model)
    answered(owner, prompt(90, 1))
    text = prompt(90, 1)[:shared] + prompt(40, 2)
    opened = owner.open(SequenceRequest(text, SAMPLED))
    assert opened.reused_tokens == shared
    answer = start(owner, opened.sequence)
    answer += continue_rows(owner, [opened.sequence], 6)[0]
    assert answer == solo(model, text, 7, SAMPLED)


def test_a_second_turn_reuses_the_first_answer(model: LoadedModel) -> None:
    owner = program(model)
    text = prompt(50, 3)
    answer = answered(owner, text, tokens=20)
    longer = (*text, *answer, *prompt(12, 4))
    opened = owner.open(SequenceRequest(longer, SAMPLED))
    assert opened.reused_tokens == 50 + 19
    assert start(owner, opened.sequence) == solo(model, longer, 1, SAMPLED)


def test_a_shorter_prompt_inside_a_cached_one_samples_from_its_own_last_token(
    model: LoadedModel,
) -> None:
    owner = program(model)
    answered(owner, prompt(90, 5))
    text = prompt(90, 5)[:60]
    opened = owner.open(SequenceRequest(text, SAMPLED))
    assert opened.reused_tokens == 59
    assert start(owner, opened.sequence) == solo(model, text, 1, SAMPLED)


def test_a_live_row_is_as_good_a_source(model: LoadedModel) -> None:
    owner = program(model)
    first = open_row(owner, prompt(80, 6), reuse=True)
    answer = start(owner, first)
    opened = owner.open(SequenceRequest(prompt(80, 6), SAMPLED))
    assert opened.reused_tokens == 80
    other = start(owner, opened.sequence)
    rest = continue_rows(owner, [first, opened.sequence], 5)
    assert answer + rest[0] == solo(model, prompt(80, 6), 6)
    assert other + rest[1] == solo(model, prompt(80, 6), 6, SAMPLED)


def test_a_request_may_keep_out_of_the_cache(model: LoadedModel) -> None:
    owner = program(model)
    row = open_row(owner, prompt(40, 7), reuse=False)
    start(owner, row)
    assert owner.open(SequenceRequest(prompt(40, 7), SAMPLED)).reused_tokens == 0
    owner.release(row)
    assert owner.usage.kv_cached_pages == 0
    answered(owner, prompt(40, 8))
    assert owner.open(SequenceRequest(prompt(40, 8), SAMPLED, False)).reused_tokens == 0


def test_cached_prefixes_give_way_and_the_newest_stays(model: LoadedModel) -> None:
    owner = program(model, max_concurrency=2, max_context=256, kv_tokens=256)
    for seed in range(12):
        answered(owner, prompt(100, 20 + seed))
        assert owner.usage.kv_used_pages <= owner.usage.kv_capacity_pages == 4
    row = open_row(owner, prompt(20, 40), reuse=True)
    assert owner.open(SequenceRequest(prompt(100, 31), SAMPLED)).reused_tokens == 100
    start(owner, row)


def test_a_prefix_that_cannot_stay_beside_its_user_becomes_its_own(model: LoadedModel) -> None:
    owner = program(model, max_concurrency=1, max_context=256, kv_tokens=256)
    answered(owner, prompt(180, 50))
    text = (*prompt(180, 50), *prompt(40, 51))
    assert owner.can_open(len(text), 10)
    opened = owner.open(SequenceRequest(text, SAMPLED))
    assert opened.reused_tokens == 180
    assert owner.usage.kv_cached_pages == 0
    answer = start(owner, opened.sequence)
    answer += continue_rows(owner, [opened.sequence], 30)[0]
    assert answer == solo(model, text, 31, SAMPLED)


def test_failed_and_cancelled_rows_leave_only_right_state_behind(model: LoadedModel) -> None:
    owner = program(model)
    row = open_row(owner, prompt(64, 52), reuse=True)
    owner.prefill(row, None)
    owner.release(row)
    opened = owner.open(SequenceRequest(prompt(64, 52), SAMPLED))
    assert opened.reused_tokens == 32
    assert prefill(owner, opened.sequence).rows[0].tokens == tuple(
        solo(model, prompt(64, 52), 1, SAMPLED)
    )
