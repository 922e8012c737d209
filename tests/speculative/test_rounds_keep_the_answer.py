"""Speculative rounds give the answer of ordinary ones, whatever was drafted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ninfer.contract import (
    CommitDecision,
    EngineOptions,
    ResumeRoute,
    RowDisposition,
    SamplingParameters,
    SequenceRequest,
    SpeculativeBackend,
)
from ninfer.runtime.loading import LoadedModel
from ninfer.runtime.program import TorchProgram
from support.drafters import ScriptedDrafter, erring
from support.program_runs import (
    CANCEL,
    GREEDY,
    RowSets,
    commit_all,
    decode,
    open_row,
    prefill,
    prompt,
    solo,
    start,
    tiny_model,
)

PENALISED = SamplingParameters(temperature=0.0, presence_penalty=0.8, frequency_penalty=0.4)
LENGTH = 40


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return tiny_model(tmp_path_factory.mktemp("model"))


def speculating(
    model: LoadedModel, drafter: ScriptedDrafter, drafts: int, **options: int
) -> TorchProgram:
    chosen = {"max_concurrency": 8, "max_context": 256, "prefill_chunk": 32} | options
    return TorchProgram(
        model,
        EngineOptions(speculative=drafter.backend, draft_tokens=drafts, **chosen),  # type: ignore[arg-type]
        drafter,
    )


def drafter_for(answer: list[int], prompt_tokens: int, period: int, ahead: bool) -> ScriptedDrafter:
    return ScriptedDrafter(erring(answer, prompt_tokens, period), ahead, () if ahead else (0, 2))


def run(owner: TorchProgram, row: int, tokens: list[int], length: int) -> list[int]:
    """Decode with the budget an engine would give, and return the whole answer."""
    while len(tokens) < length:
        batch = owner.decode([row], [length - len(tokens)], None)
        tokens = tokens + commit_all(owner, batch)[0]
    return tokens


@pytest.mark.parametrize("sampling", [GREEDY, PENALISED])
@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize(("drafts", "period"), [(1, 3), (5, 4), (5, 1000), (15, 7), (15, 1)])
def test_greedy_answers_do_not_depend_on_the_drafts(
    model: LoadedModel, drafts: int, period: int, ahead: bool, sampling: SamplingParameters
) -> None:
    expected = solo(model, prompt(50, 1), LENGTH, sampling)
    drafter = drafter_for(expected, 50, period, ahead)
    owner = speculating(model, drafter, drafts)
    row = open_row(owner, prompt(50, 1), sampling)
    found = run(owner, row, start(owner, row), LENGTH)
    assert found == expected
    if period == 1000:
        assert drafter.proposals <= 2 + LENGTH // (drafts + 1)


@pytest.mark.parametrize("ahead", [False, True])
def test_rows_of_any_extent_share_rounds(model: LoadedModel, ahead: bool) -> None:
    lengths = (3, 60, 17, 40)
    answers = [solo(model, prompt(n, 70 + n), 30) for n in lengths]
    places = {n + i: t for n, a in zip(lengths, answers, strict=True) for i, t in enumerate(a)}
    drafter = ScriptedDrafter(lambda place, anchor: places.get(place, 1), ahead)
    owner = speculating(model, drafter, 5)
    rows = [open_row(owner, prompt(n, 70 + n)) for n in lengths]
    tokens = {row: start(owner, row) for row in rows}
    budgets = dict(zip(rows, (30, 2, 9, 21), strict=True))
    while any(len(tokens[row]) < budgets[row] for row in rows):
        live = [row for row in reversed(rows) if len(tokens[row]) < budgets[row]]
        remaining = [budgets[row] - len(tokens[row]) for row in live]
        batch = owner.decode(live, remaining, None)
        for count, pending in zip(remaining, batch.rows, strict=True):
            assert pending.speculation.extent == min(5, count - 1)
            assert len(pending.tokens) == pending.speculation.accepted + 1 <= count
        for row, added in zip(live, commit_all(owner, batch), strict=True):
            tokens[row] += added
    for row, answer in zip(rows, answers, strict=True):
        assert tokens[row] == answer[: budgets[row]]


@pytest.mark.parametrize("ahead", [False, True])
def test_the_context_is_filled_to_its_last_place(model: LoadedModel, ahead: bool) -> None:
    expected = solo(model, prompt(50, 2), 14, max_context=64)
    drafter = drafter_for(expected, 50, 1000, ahead)
    owner = speculating(model, drafter, 15, max_context=64, max_concurrency=1)
    row = open_row(owner, prompt(50, 2))
    tokens = start(owner, row)
    while len(tokens) < 14:
        assert owner.can_advance([row]) == 1
        tokens += commit_all(owner, decode(owner, [row]))[0]
    assert tokens == expected


@pytest.mark.parametrize("ahead", [False, True])
def test_an_aborted_round_happens_again_exactly(model: LoadedModel, ahead: bool) -> None:
    sampling = SamplingParameters(temperature=0.9, top_p=0.95, seed=5)
    expected = solo(model, prompt(45, 3), 30)
    drafter = drafter_for(expected, 45, 4, ahead)
    once, twice = (speculating(model, drafter, 5) for _ in range(2))
    rows = [open_row(owner, prompt(45, 3), sampling) for owner in (once, twice)]
    assert start(once, rows[0]) == start(twice, rows[1])
    for _ in range(8):
        twice.abort(decode(twice, [rows[1]]))
        dropped = decode(twice, [rows[1]])
        twice.abort(dropped)
        repeated = decode(twice, [rows[1]])
        single = decode(once, [rows[0]])
        assert repeated.rows == dropped.rows == single.rows
        commit_all(once, single)
        commit_all(twice, repeated)


@pytest.mark.parametrize("ahead", [False, True])
def test_a_row_that_leaves_does_not_touch_its_neighbours(model: LoadedModel, ahead: bool) -> None:
    expected = solo(model, prompt(30, 4), 24)
    drafter = drafter_for(expected, 30, 5, ahead)
    owner = speculating(model, drafter, 5)
    rows = [open_row(owner, prompt(30, 4)) for _ in range(3)]
    tokens = [start(owner, row) for row in rows]
    batch = owner.decode(rows, [20] * 3, RowSets(None, None, None))
    decisions = [CommitDecision(len(row.tokens)) for row in batch.rows]
    found = owner.commit(batch, [decisions[0], CANCEL, decisions[2]])
    assert found[1] is RowDisposition.CANCELLED_RELEASED
    for index in (0, 2):
        tokens[index] += batch.rows[index].tokens
        assert run(owner, rows[index], tokens[index], 24) == expected


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("kept", [1, 2, 3])
def test_a_terminal_prefix_is_what_a_later_prompt_reuses(
    model: LoadedModel, ahead: bool, kept: int
) -> None:
    expected = solo(model, prompt(40, 5), 10)
    drafter = drafter_for(expected, 40, 1000, ahead)
    owner = speculating(model, drafter, 5)
    row = open_row(owner, prompt(40, 5), reuse=True)
    start(owner, row)
    batch = decode(owner, [row])
    assert len(batch.rows[0].tokens) == 6
    owner.commit(batch, [CommitDecision(kept, terminal=True)])
    owner.release(row)
    longer = (*prompt(40, 5), *expected[: 1 + kept], 200, 201)
    opened = owner.open(SequenceRequest(longer, GREEDY))
    assert 40 - int(ahead) <= opened.reused_tokens <= 40 + kept
    again = start(owner, opened.sequence)
    assert run(owner, opened.sequence, again, 8) == solo(model, longer, 8)


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("route", [ResumeRoute.SNAPSHOT, ResumeRoute.REPLAY])
@pytest.mark.parametrize("reuse", [False, True])
def test_a_paused_row_answers_as_if_it_had_never_left(
    model: LoadedModel, ahead: bool, route: ResumeRoute, reuse: bool
) -> None:
    expected = solo(model, prompt(70, 6), 30)
    drafter = drafter_for(expected, 70, 4, ahead)
    owner = speculating(model, drafter, 5)
    row = open_row(owner, prompt(70, 6), reuse=reuse)
    tokens = start(owner, row)
    for length in (1, 8, 20):
        tokens = run(owner, row, tokens, length)
        held = owner.snapshot_bytes(row)
        state = owner.pause(row, route)
        assert state.host_bytes == (held if route is ResumeRoute.SNAPSHOT else 0)
        other = open_row(owner, prompt(90, 7))
        start(owner, other)
        owner.release(other)
        row = owner.resume(state)
        while route is ResumeRoute.REPLAY and not owner.replay(row).complete:
            pass
    assert run(owner, row, tokens, 30) == expected


@pytest.mark.parametrize("ahead", [False, True])
def test_a_cached_prompt_starts_without_computing_anything(model: LoadedModel, ahead: bool) -> None:
    expected = solo(model, prompt(70, 8), 20)
    drafter = drafter_for(expected, 70, 6, ahead)
    owner = speculating(model, drafter, 5)
    for reused in (0, 70, 70):
        opened = owner.open(SequenceRequest(prompt(70, 8), GREEDY))
        assert opened.reused_tokens == reused
        row = opened.sequence
        assert run(owner, row, start(owner, row), 20) == expected
        owner.release(row)
    shared = (*prompt(70, 8)[:33], *prompt(20, 9))
    opened = owner.open(SequenceRequest(shared, GREEDY))
    assert opened.reused_tokens == 33 - int(ahead)
    assert run(owner, opened.sequence, start(owner, opened.sequence), 6) == solo(model, shared, 6)


@pytest.mark.parametrize("ahead", [False, True])
def test_control_tokens_go_between_rounds(model: LoadedModel, ahead: bool) -> None:
    forced = [11, 12, 13]
    text = prompt(33, 10)
    head = solo(model, text, 7)
    tail = solo(model, (*text, *head, *forced), 12)
    drafter = drafter_for([*head, *forced, *tail], 33, 5, ahead)
    owner = speculating(model, drafter, 5)
    row = open_row(owner, text)
    tokens = run(owner, row, start(owner, row), 7)
    assert tokens == head
    owner.commit(owner.append_control(row, forced), [CommitDecision(3)])
    found: list[int] = []
    assert run(owner, row, found, 12) == tail


def test_the_first_token_of_a_prompt_is_no_round(model: LoadedModel) -> None:
    drafter = drafter_for([], 10, 2, ahead=True)
    owner = speculating(model, drafter, 5)
    batch = prefill(owner, open_row(owner, prompt(10, 11), replace(GREEDY, seed=3)))
    assert batch.rows[0].speculation.extent == 0
    assert drafter.backend is SpeculativeBackend.MTP
