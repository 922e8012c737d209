"""Pause and resume: a sequence that was away answers as if it had never left."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from ninfer.contract import (
    ResumeRoute,
    ResumeState,
    RowMismatch,
)
from ninfer.runtime.loading import LoadedModel, load_model
from support.hybrid_models import write_hybrid
from support.program_runs import (
    ROUTES,
    SAMPLED,
    RowSets,
    commit_all,
    continue_rows,
    decode,
    open_row,
    prefill,
    program,
    prompt,
    restore,
    solo,
    start,
    tiny_model,
)


@pytest.fixture(scope="module", params=["dense", "hybrid"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    folder = tmp_path_factory.mktemp("model")
    if request.param == "dense":
        return tiny_model(folder, "qwen3")
    return load_model(write_hybrid(folder, seed=5), dtype=torch.float32)


@pytest.mark.parametrize("reuse", [False, True])
@pytest.mark.parametrize("route", ROUTES)
def test_a_sequence_answers_as_if_it_had_never_left(
    model: LoadedModel, route: ResumeRoute, reuse: bool
) -> None:
    owner = program(model)
    neighbour = open_row(owner, prompt(40, 1), replace(SAMPLED, seed=5))
    others = start(owner, neighbour)
    row = open_row(owner, prompt(70, 0), SAMPLED, reuse=reuse)
    answer = start(owner, row)
    for length in (3, 1, 40):
        answer += continue_rows(owner, [row], length)[0]
        held = owner.snapshot_bytes(row)
        state = owner.pause(row, route)
        assert state.route is route
        assert state.host_bytes == (held if route is ResumeRoute.SNAPSHOT else 0)
        others += continue_rows(owner, [neighbour], 2)[0]
        # Someone else takes the row and leaves a state of its own there.
        start(owner, stranger := open_row(owner, prompt(20, 9)))
        owner.release(stranger)
        assert owner.can_resume(state)
        row = restore(owner, state)
    answer += continue_rows(owner, [row], 5)[0]
    assert answer == solo(model, prompt(70, 0), len(answer), SAMPLED)
    assert others == solo(model, prompt(40, 1), len(others), replace(SAMPLED, seed=5))


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("chunks", [0, 1, 2])
def test_a_pause_inside_a_prompt_loses_nothing(
    model: LoadedModel, route: ResumeRoute, chunks: int
) -> None:
    owner = program(model)
    row = open_row(owner, prompt(80, 2), SAMPLED)
    for _ in range(chunks):
        owner.prefill(row, None)
    row = restore(owner, owner.pause(row, route))
    answer = start(owner, row) + continue_rows(owner, [row], 4)[0]
    assert answer == solo(model, prompt(80, 2), 5, SAMPLED)


@pytest.mark.parametrize("route", ROUTES)
def test_a_pause_between_a_prompt_and_its_first_token_loses_nothing(
    model: LoadedModel, route: ResumeRoute
) -> None:
    owner = program(model)
    row = open_row(owner, prompt(45, 3), SAMPLED)
    owner.abort(prefill(owner, row))
    row = restore(owner, owner.pause(row, route))
    answer = start(owner, row) + continue_rows(owner, [row], 4)[0]
    assert answer == solo(model, prompt(45, 3), 5, SAMPLED)


def test_a_pause_during_a_replay_continues_the_replay(model: LoadedModel) -> None:
    owner = program(model)
    row = open_row(owner, prompt(60, 4), SAMPLED)
    answer = start(owner, row) + continue_rows(owner, [row], 50)[0]
    for route in (ResumeRoute.REPLAY, ResumeRoute.SNAPSHOT, ResumeRoute.REPLAY):
        row = owner.resume(owner.pause(row, route))
        step = owner.replay(row)
        assert step.computed_tokens == 32
        assert not step.complete
        with pytest.raises(RowMismatch):
            decode(owner, [row])
    while not owner.replay(row).complete:
        pass
    answer += continue_rows(owner, [row], 5)[0]
    assert answer == solo(model, prompt(60, 4), len(answer), SAMPLED)


def test_a_revoked_snapshot_still_comes_back(model: LoadedModel) -> None:
    owner = program(model)
    row = open_row(owner, prompt(50, 5), SAMPLED)
    answer = start(owner, row) + continue_rows(owner, [row], 9)[0]
    state = owner.revoke(owner.pause(row, ResumeRoute.SNAPSHOT))
    assert state.route is ResumeRoute.REPLAY
    assert state.host_bytes == 0
    row = restore(owner, state)
    answer += continue_rows(owner, [row], 5)[0]
    assert answer == solo(model, prompt(50, 5), len(answer), SAMPLED)


def test_a_dropped_sequence_holds_nothing(model: LoadedModel) -> None:
    owner = program(model)
    row = open_row(owner, prompt(50, 5))
    start(owner, row)
    state = owner.pause(row, ResumeRoute.SNAPSHOT)
    assert state.host_bytes > 0
    owner.drop(state)
    assert state.host_bytes == 0
    assert owner.usage.rows_used == 0
    assert owner.usage.kv_used_pages == 0


def test_the_first_round_after_a_restore_asks_for_masks_again(model: LoadedModel) -> None:
    owner = program(model)
    row = open_row(owner, prompt(50, 6), SAMPLED)
    masks = RowSets({9, 10})
    start(owner, row, masks)
    row = restore(owner, owner.pause(row, ResumeRoute.REPLAY))
    assert masks.fill_calls == 1
    assert commit_all(owner, decode(owner, [row], masks))[0][0] in {9, 10}
    assert masks.fill_calls == 2


def test_a_pending_row_cannot_be_paused(model: LoadedModel) -> None:
    owner = program(model)
    row = open_row(owner, prompt(10, 7))
    prefill(owner, row)
    with pytest.raises(RowMismatch, match="pending"):
        owner.pause(row, ResumeRoute.SNAPSHOT)


def test_two_long_answers_share_room_for_one(model: LoadedModel) -> None:
    owner = program(model, max_concurrency=2, max_context=192, kv_tokens=192)
    first, second = open_row(owner, prompt(30, 8)), open_row(owner, prompt(30, 9))
    answers = {first: start(owner, first), second: start(owner, second)}
    waiting: list[tuple[ResumeState, list[int]]] = []
    while len(answers[first]) < 150:
        resident = [row for row in (first, second) if row in answers]
        fitting = owner.can_advance(resident)
        if fitting < len(resident):
            waiting.append((owner.pause(second, ResumeRoute.REPLAY), answers.pop(second)))
            continue
        for row, added in zip(resident, commit_all(owner, decode(owner, resident)), strict=True):
            answers[row] += added
    ((state, answer),) = waiting
    assert not owner.can_resume(state)
    owner.release(first)
    assert owner.can_resume(state)
    row = restore(owner, state)
    answer += continue_rows(owner, [row], 150 - len(answer))[0]
    assert answers[first] == solo(model, prompt(30, 8), 150)
    assert answer == solo(model, prompt(30, 9), 150)
