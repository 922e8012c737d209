"""Rounds of a program: rows are independent, commits are exact, aborts leave nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from ninfer.contract import (
    CommitDecision,
    NonFiniteLogits,
    RngPurpose,
    RoundKind,
    RowDisposition,
    RowMismatch,
    SamplingParameters,
)
from ninfer.ops import SamplingBatch, SamplingRow, masked_sampling
from ninfer.runtime.loading import LoadedModel, load_model
from ninfer.runtime.models.forward_batch import RowInput, forward_batch
from ninfer.runtime.models.kv_pool import SlotMap
from support.program_runs import (
    CANCEL,
    FAIL,
    GO_ON,
    GREEDY,
    LAST,
    RowSets,
    commit_all,
    continue_rows,
    decode,
    open_row,
    prefill,
    program,
    prompt,
    solo,
    start,
    tiny_model,
)
from support.tiny_models import write_checkpoint

SAMPLED = SamplingParameters(
    temperature=0.9, top_p=0.95, presence_penalty=0.6, frequency_penalty=0.3, seed=7
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return tiny_model(tmp_path_factory.mktemp("model"))


def full_logits(model: LoadedModel, tokens: list[int]) -> torch.Tensor:
    """Compute the last logits of a text from nothing, in the token domain."""
    pool = model.decoder.new_pool(8)
    batch = forward_batch([RowInput(tokens, 0, SlotMap(range(8)))], pool)
    logits = model.decoder.logits(model.decoder.forward(batch, pool)[-1:])
    return logits[:, : model.facts.token_domain]


def test_greedy_rounds_take_the_best_token_of_the_whole_text(model: LoadedModel) -> None:
    text = list(prompt(75, 0))
    answer = solo(model, text, 12)
    for token in answer:
        assert token == int(full_logits(model, text).argmax())
        text.append(token)


def test_a_draw_is_keyed_by_seed_place_in_the_ledger_and_purpose(model: LoadedModel) -> None:
    text = list(prompt(40, 1))
    plain = replace(SAMPLED, presence_penalty=0.0, frequency_penalty=0.0)
    answer = solo(model, text, 6, plain)
    for index, token in enumerate(answer):
        purpose = RngPurpose.DECODE if index else RngPurpose.PREFILL
        batch = SamplingBatch.pack([SamplingRow(plain, len(text), purpose)])
        assert token == masked_sampling(full_logits(model, text), batch).tokens.item()
        text.append(token)


def test_penalties_read_committed_generated_tokens_only(model: LoadedModel) -> None:
    text = list(prompt(30, 2))
    harsh = SamplingParameters(temperature=0.0, presence_penalty=2.0, frequency_penalty=2.0)
    counts = torch.zeros(1, model.facts.token_domain)
    for token in solo(model, text, 25, harsh):
        adjusted = full_logits(model, text) - 2.0 * (counts > 0) - 2.0 * counts
        assert token == int(adjusted.argmax())
        text.append(token)
        counts[0, token] += 1


def test_eight_rows_answer_as_eight_solo_runs_do(model: LoadedModel) -> None:
    prompts = [prompt(20 + 9 * i, 10 + i) for i in range(8)]
    samplings = [replace(SAMPLED, seed=i) if i % 2 else GREEDY for i in range(8)]
    owner = program(model)
    rows = [open_row(owner, p, s) for p, s in zip(prompts, samplings, strict=True)]
    firsts = [start(owner, row) for row in rows]
    later = continue_rows(owner, rows, 15)
    for first, rest, token_ids, sampling in zip(firsts, later, prompts, samplings, strict=True):
        assert first + rest == solo(model, token_ids, 16, sampling)


def test_the_order_of_rows_changes_nothing(model: LoadedModel) -> None:
    prompts = [prompt(25, 30 + i) for i in range(4)]
    owner = program(model)
    rows = [open_row(owner, p, replace(SAMPLED, seed=i)) for i, p in enumerate(prompts)]
    tokens = {row: start(owner, row) for row in rows}
    for shift in range(8):
        order = rows[shift % 4 :] + rows[: shift % 4]
        for row, added in zip(order, commit_all(owner, decode(owner, order)), strict=True):
            tokens[row] += added
    for i, row in enumerate(rows):
        assert tokens[row] == solo(model, prompts[i], 9, replace(SAMPLED, seed=i))


def test_an_aborted_round_happens_again_exactly(model: LoadedModel) -> None:
    owner = program(model)
    row = open_row(owner, prompt(50, 3), SAMPLED)
    first = prefill(owner, row)
    owner.abort(first)
    again = prefill(owner, row)
    assert again.rows == first.rows
    answer = commit_all(owner, again)[0]
    for _ in range(10):
        dropped = decode(owner, [row])
        owner.abort(dropped)
        repeated = decode(owner, [row])
        assert repeated.rows == dropped.rows
        answer += commit_all(owner, repeated)[0]
    assert answer == solo(model, prompt(50, 3), 11, SAMPLED)


@pytest.mark.parametrize(
    ("decision", "disposition"),
    [
        (CANCEL, RowDisposition.CANCELLED_RELEASED),
        (FAIL, RowDisposition.FAILED_RELEASED),
    ],
)
def test_a_row_that_leaves_does_not_touch_its_neighbours(
    model: LoadedModel, decision: CommitDecision, disposition: RowDisposition
) -> None:
    owner = program(model)
    rows = [open_row(owner, prompt(30, 40 + i), replace(SAMPLED, seed=i)) for i in range(3)]
    tokens = [start(owner, row) for row in rows]
    batch = decode(owner, rows)
    found = owner.commit(batch, [GO_ON, decision, GO_ON])
    assert list(found) == [RowDisposition.ACTIVE, disposition, RowDisposition.ACTIVE]
    assert owner.usage.rows_used == 2
    with pytest.raises(RowMismatch):
        owner.release(rows[1])
    newcomer = open_row(owner, prompt(60, 50), SAMPLED)
    answer = start(owner, newcomer)
    rest = continue_rows(owner, [rows[2], newcomer, rows[0]], 6)
    for i, found_rest in ((0, rest[2]), (2, rest[0])):
        whole = tokens[i] + list(batch.rows[i].tokens) + found_rest
        assert whole == solo(model, prompt(30, 40 + i), 8, replace(SAMPLED, seed=i))
    assert answer + rest[1] == solo(model, prompt(60, 50), 7, SAMPLED)


def test_a_terminal_row_stays_until_it_is_released(model: LoadedModel) -> None:
    owner = program(model)
    row = open_row(owner, prompt(10, 4))
    batch = prefill(owner, row)
    assert list(owner.commit(batch, [LAST])) == [RowDisposition.FINISHABLE]
    assert owner.usage.rows_used == 1
    owner.release(row)
    assert owner.usage.rows_used == 0


def test_control_tokens_continue_the_text_without_a_draw(model: LoadedModel) -> None:
    forced = [11, 12, 13, 14]
    owner = program(model)
    row = open_row(owner, prompt(33, 5), SAMPLED)
    answer = start(owner, row)
    batch = owner.append_control(row, forced)
    assert batch.kind is RoundKind.CONTROL
    assert batch.rows[0].tokens == tuple(forced)
    owner.commit(batch, [CommitDecision(4)])
    answer += forced + continue_rows(owner, [row], 5)[0]

    text = list(prompt(33, 5)) + answer[:5]
    counts = torch.zeros(1, model.facts.token_domain, dtype=torch.int32)
    for token in answer[:5]:
        counts[0, token] += 1
    for token in answer[5:]:
        sampling = SamplingBatch.pack([SamplingRow(SAMPLED, len(text))])
        logits = full_logits(model, text)
        assert token == masked_sampling(logits, sampling, None, counts).tokens.item()
        counts[0, token] += 1
        text.append(token)


def test_a_terminal_prefix_of_control_tokens_is_all_that_is_committed(model: LoadedModel) -> None:
    owner = program(model)
    row = open_row(owner, prompt(20, 6), reuse=True)
    first = start(owner, row)
    batch = owner.append_control(row, [11, 12, 13])
    owner.commit(batch, [CommitDecision(2, terminal=True)])
    owner.release(row)
    longer = [*prompt(20, 6), *first, 11, 12, 99, 98]
    sequence = open_row(owner, longer, reuse=True)
    assert prefill(owner, sequence).rows[0].tokens == tuple(solo(model, longer, 1))


def test_masks_bound_every_draw(model: LoadedModel) -> None:
    allowed = {5, 77, 130, 259}
    owner = program(model)
    constrained, free = open_row(owner, prompt(64, 7), SAMPLED), open_row(owner, prompt(9, 8))
    tokens = start(owner, constrained, RowSets(allowed))
    answer = start(owner, free)
    for _ in range(10):
        batch = decode(owner, [free, constrained], RowSets(None, allowed))
        added = commit_all(owner, batch)
        answer += added[0]
        tokens += added[1]
    assert set(tokens) <= allowed
    assert answer == solo(model, prompt(9, 8), 11)


def test_a_provider_without_constrained_rows_is_never_asked_to_fill(model: LoadedModel) -> None:
    owner = program(model)
    row = open_row(owner, prompt(12, 9))
    masks = RowSets(None)
    start(owner, row, masks)
    commit_all(owner, decode(owner, [row], masks))
    assert masks.fill_calls == 0


def test_only_the_last_chunk_of_a_prompt_asks_for_masks(model: LoadedModel) -> None:
    owner = program(model)
    row = open_row(owner, prompt(80, 10))
    masks = RowSets({3})
    steps = [owner.prefill(row, masks) for _ in range(3)]
    assert [step.computed_tokens for step in steps] == [32, 32, 16]
    assert [step.batch is None for step in steps] == [True, True, False]
    assert masks.fill_calls == 1


def test_a_dead_end_fails_its_row_alone(model: LoadedModel) -> None:
    owner = program(model)
    rows = [open_row(owner, prompt(30, 60 + i), replace(SAMPLED, seed=i)) for i in range(3)]
    tokens = [start(owner, row) for row in rows]
    batch = decode(owner, rows, RowSets(None, set(), None))
    assert [row.failed for row in batch.rows] == [False, True, False]
    assert batch.rows[1].tokens == ()
    with pytest.raises(RowMismatch):
        owner.commit(batch, [GO_ON, GO_ON, GO_ON])
    assert owner.commit(batch, [GO_ON, FAIL, GO_ON])[1] is RowDisposition.FAILED_RELEASED
    rest = continue_rows(owner, [rows[0], rows[2]], 4)
    for i, found in ((0, rest[0]), (2, rest[1])):
        whole = tokens[i] + list(batch.rows[i].tokens) + found
        assert whole == solo(model, prompt(30, 60 + i), 6, replace(SAMPLED, seed=i))


def test_a_dead_end_at_the_first_token_fails_the_prompt(model: LoadedModel) -> None:
    owner = program(model)
    row = open_row(owner, prompt(12, 11))
    batch = prefill(owner, row, RowSets(set()))
    assert batch.rows[0].failed
    owner.commit(batch, [FAIL])
    assert owner.usage.rows_used == 0


def test_wrong_use_is_refused_and_changes_nothing(model: LoadedModel) -> None:
    owner = program(model)
    row, other = open_row(owner, prompt(14, 12)), open_row(owner, prompt(15, 13))
    with pytest.raises(RowMismatch, match="not ready"):
        decode(owner, [row])
    start(owner, row)
    answer = start(owner, other)
    with pytest.raises(RowMismatch, match="not in prefill"):
        owner.prefill(row, None)
    with pytest.raises(RowMismatch, match="twice"):
        decode(owner, [row, row])
    with pytest.raises(RowMismatch, match="no control"):
        owner.append_control(row, [])
    batch = decode(owner, [row, other])
    for wrong in ([GO_ON], [CommitDecision(2), GO_ON], [CommitDecision(0), GO_ON]):
        with pytest.raises(RowMismatch):
            owner.commit(batch, wrong)
    for refused in (lambda: decode(owner, [row]), lambda: owner.release(row)):
        with pytest.raises(RowMismatch):
            refused()
    owner.commit(batch, [CANCEL, GO_ON])
    with pytest.raises(RowMismatch, match="pending"):
        owner.commit(batch, [CANCEL, GO_ON])
    answer += list(batch.rows[1].tokens) + continue_rows(owner, [other], 3)[0]
    assert answer == solo(model, prompt(15, 13), 5)


def test_broken_numbers_are_an_integrity_error(tmp_path: Path) -> None:
    file = write_checkpoint(tmp_path) / "model.safetensors"
    weights = load_file(file)
    # Each is finite, or it would not be loaded; their products are not.
    weights["model.norm.weight"].fill_(3e38)
    save_file(weights, file)
    owner = program(load_model(tmp_path, dtype=torch.float32))
    row = open_row(owner, prompt(8, 14))
    with pytest.raises(NonFiniteLogits):
        owner.prefill(row, None)
