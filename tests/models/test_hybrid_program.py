"""Sequences of a hybrid answer alike alone, in company, after pauses and after dropped rounds."""

from __future__ import annotations

import pytest
import torch

from ninfer.contract import (
    CommitDecision,
    SequenceId,
    SequenceRequest,
)
from ninfer.runtime.loading import LoadedModel, load_model
from ninfer.runtime.program import TorchProgram
from support.hybrid_models import write_hybrid
from support.program_runs import (
    CANCEL,
    FAIL,
    GO_ON,
    SAMPLED,
    commit_all,
    continue_rows,
    decode,
    open_row,
    prefill,
    program,
    prompt,
    solo,
    start,
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    torch.set_num_threads(1)
    folder = write_hybrid(tmp_path_factory.mktemp("hybrid"), seed=5)
    return load_model(folder, dtype=torch.float32)


def test_the_answer_is_what_transformers_would_choose(model: LoadedModel) -> None:
    from transformers import Qwen3_5ForCausalLM

    oracle = Qwen3_5ForCausalLM.from_pretrained(model.path, dtype=torch.float32).eval()
    ledger = list(prompt(75, 0))
    answer = solo(model, ledger, 12)
    for token in answer:
        with torch.no_grad():
            logits = oracle(torch.tensor([ledger])).logits[0, -1, : model.facts.token_domain]
        assert token == int(logits.argmax())
        ledger.append(token)


def test_rows_that_come_and_go_do_not_see_each_other(model: LoadedModel) -> None:
    owner = program(model, max_concurrency=3)
    texts = [prompt(length, length) for length in (40, 7, 65, 33, 12)]
    rows = {index: open_row(owner, texts[index], SAMPLED) for index in (0, 1, 2)}
    answers = {index: start(owner, row) for index, row in rows.items()}
    for incoming, outgoing in ((3, 1), (4, 0)):
        _decode_together(owner, rows, answers)
        owner.release(rows.pop(outgoing))
        rows[incoming] = open_row(owner, texts[incoming], SAMPLED)
        answers[incoming] = start(owner, rows[incoming])
    _decode_together(owner, rows, answers)
    for index, answer in answers.items():
        assert answer == solo(model, texts[index], len(answer), SAMPLED)


def _decode_together(
    owner: TorchProgram, rows: dict[int, SequenceId], answers: dict[int, list[int]]
) -> None:
    order = sorted(rows, reverse=True)
    for index, added in zip(order, continue_rows(owner, [rows[i] for i in order], 4), strict=True):
        answers[index] += added


def test_dropped_rounds_leave_no_trace(model: LoadedModel) -> None:
    owner = program(model)
    rows = [open_row(owner, prompt(30 + r, r), SAMPLED) for r in range(2)]
    owner.abort(prefill(owner, rows[0]))
    answers = [start(owner, row) for row in rows]
    for _ in range(3):
        owner.abort(decode(owner, rows))
        owner.abort(owner.append_control(rows[0], [1, 2, 3]))
        for answer, added in zip(answers, commit_all(owner, decode(owner, rows)), strict=True):
            answer += added
    for r, answer in enumerate(answers):
        assert answer == solo(model, prompt(30 + r, r), 4, SAMPLED)


@pytest.mark.parametrize("decision", [CANCEL, FAIL])
def test_a_row_that_ends_in_a_round_leaves_the_others_right(
    model: LoadedModel, decision: CommitDecision
) -> None:
    owner = program(model)
    rows = [open_row(owner, prompt(20 + r, r), SAMPLED) for r in range(3)]
    answers = [start(owner, row) for row in rows]
    batch = decode(owner, rows)
    owner.commit(batch, [GO_ON, decision, GO_ON])
    kept = [rows[0], rows[2]]
    first = [list(batch.rows[r].tokens) for r in (0, 2)]
    rest = continue_rows(owner, kept, 3)
    for r, added, more in zip((0, 2), first, rest, strict=True):
        assert answers[r] + added + more == solo(model, prompt(20 + r, r), 5, SAMPLED)


def test_forced_tokens_become_part_of_the_state(model: LoadedModel) -> None:
    owner = program(model)
    row = open_row(owner, prompt(30, 4))
    first = start(owner, row)
    forced = list(prompt(9, 5))
    commit_all(owner, owner.append_control(row, forced))
    text = (*prompt(30, 4), *first, *forced)
    assert continue_rows(owner, [row], 6)[0] == solo(model, text, 6)


def test_only_the_accepted_part_of_forced_tokens_is_kept(model: LoadedModel) -> None:
    owner = program(model)
    row = open_row(owner, prompt(30, 4))
    first = start(owner, row)
    batch = owner.append_control(row, list(prompt(9, 5)))
    owner.commit(batch, [CommitDecision(accepted_tokens=4, terminal=True)])
    text = (*prompt(30, 4), *first, *prompt(9, 5)[:4])
    assert continue_rows(owner, [row], 6)[0] == solo(model, text, 6)


def test_no_prompt_starts_from_keys_whose_state_is_gone(model: LoadedModel) -> None:
    owner = program(model)
    row = open_row(owner, prompt(50, 6), reuse=True)
    answer = start(owner, row) + continue_rows(owner, [row], 5)[0]
    longer = (*prompt(50, 6), *answer, *prompt(5, 7))
    for text in (prompt(50, 6), longer):
        opened = owner.open(SequenceRequest(text, SAMPLED))
        assert start(owner, opened.sequence) == solo(model, text, 1, SAMPLED)
        owner.release(opened.sequence)
    owner.release(row)
    opened = owner.open(SequenceRequest(longer, SAMPLED))
    assert start(owner, opened.sequence) == solo(model, longer, 1, SAMPLED)
