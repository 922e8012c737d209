"""Prompts of a hybrid start at checkpoints, and answer what they would have answered anyway."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ninfer.contract import (
    CommitDecision,
    OpenedSequence,
    PrefixPath,
    ResumeRoute,
    SamplingParameters,
    SequenceRequest,
    SpeculativeBackend,
)
from ninfer.runtime.program import TorchProgram
from ninfer.runtime.program.checkpoint_places import TAIL_TOKENS
from ninfer.runtime.program.reservation import reserved_slots
from support.hybrid_reuse import (
    DFLASH,
    FEW_SETUPS,
    MTP,
    NONE,
    SETUPS,
    Setup,
    TinyHybrid,
    prompt_logits,
    require_fresh_state,
)
from support.program_runs import (
    CANCEL,
    GREEDY,
    ROUTES,
    RowSets,
    commit_all,
    continue_rows,
    decode,
    open_row,
    prefill,
    prompt,
    solo,
    start,
)
from support.round_forms import FORMS, Form

SAMPLED = SamplingParameters(temperature=0.9, top_p=0.95, presence_penalty=0.6, seed=3)
LENGTH = 100
TAIL = LENGTH - TAIL_TOKENS


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyHybrid:
    return TinyHybrid(tmp_path_factory.mktemp("tiny"))


def answered(owner: TorchProgram, text: tuple[int, ...], rounds: int = 4) -> list[int]:
    """Answer a prompt and release it, so that it is cached."""
    row = open_row(owner, text, reuse=True)
    answer = start(owner, row) + continue_rows(owner, [row], rounds)[0]
    owner.release(row)
    return answer


def opened(owner: TorchProgram, text: tuple[int, ...]) -> OpenedSequence:
    return owner.open(SequenceRequest(text, GREEDY))


def require_right(tiny: TinyHybrid, owner: TorchProgram, text: tuple[int, ...]) -> int:
    """Answer a prompt, check it against a fresh computation, and return its reused tokens."""
    found = opened(owner, text)
    batch = prefill(owner, found.sequence)
    fresh = tiny.logits(text)[-1]
    assert (prompt_logits(owner, found.sequence, tiny.model) - fresh).abs().max() < 1e-4
    answer = commit_all(owner, batch)[0] + continue_rows(owner, [found.sequence], 3)[0]
    tiny.require_greedy(text, answer)
    owner.release(found.sequence)
    path = PrefixPath.CHECKPOINT if found.reused_tokens else PrefixPath.ROOT
    assert found.prefix_path is path
    return found.reused_tokens


@pytest.mark.parametrize("setup", SETUPS, ids=str)
def test_the_same_prompt_computes_nothing_and_chooses_for_itself(
    tiny: TinyHybrid, setup: Setup
) -> None:
    owner = tiny.program(setup)
    text = prompt(LENGTH, 0)
    cached = answered(owner, text)
    found = opened(owner, text)
    assert (found.reused_tokens, found.prefix_path) == (LENGTH, PrefixPath.CHECKPOINT)
    allowed = {token for token in range(200) if token != cached[0]}
    step = owner.prefill(found.sequence, RowSets(allowed))
    assert step.computed_tokens == 0
    assert step.batch is not None
    assert step.batch.rows[0].tokens[0] in allowed
    owner.abort(step.batch)
    answer = start(owner, found.sequence) + continue_rows(owner, [found.sequence], 4)[0]
    tiny.require_greedy(text, answer)
    assert answer[: len(cached)] == cached[: len(answer)]


def test_a_sampled_prompt_that_is_cached_draws_as_one_that_is_not(tiny: TinyHybrid) -> None:
    owner = tiny.program()
    answered(owner, prompt(LENGTH, 0))
    found = owner.open(SequenceRequest(prompt(LENGTH, 0), SAMPLED))
    assert found.reused_tokens == LENGTH
    answer = start(owner, found.sequence) + continue_rows(owner, [found.sequence], 8)[0]
    assert answer == solo(tiny.model, prompt(LENGTH, 0), 9, SAMPLED)


@pytest.mark.parametrize("setup", SETUPS, ids=str)
def test_the_next_turn_goes_on_where_the_answer_ended(tiny: TinyHybrid, setup: Setup) -> None:
    owner = tiny.program(setup)
    text = prompt(LENGTH, 1)
    for turn in range(3):
        answer = answered(owner, text)
        longer = (*text, *answer, *prompt(20, 30 + turn))
        assert require_right(tiny, owner, longer) == len(text) + len(answer) - 1
        text = longer


@pytest.mark.parametrize("setup", FEW_SETUPS, ids=str)
@pytest.mark.parametrize(
    ("shared", "reused"),
    [
        (TAIL - 1, 0),
        (TAIL, TAIL),
        (TAIL + 1, TAIL),
        (LENGTH - 1, TAIL),
        (LENGTH, LENGTH),
        (LENGTH + 1, LENGTH),
    ],
)
def test_a_prompt_that_parts_starts_at_the_checkpoint_before(
    tiny: TinyHybrid, setup: Setup, shared: int, reused: int
) -> None:
    owner = tiny.program(setup)
    text = prompt(LENGTH, 2)
    whole = (*text, *answered(owner, text))
    other = (*whole[:shared], (whole[shared] + 1) % 200, *prompt(30, 3))
    assert require_right(tiny, owner, other) == reused


@pytest.mark.parametrize("setup", FEW_SETUPS, ids=str)
@pytest.mark.parametrize(("length", "reused"), [(TAIL, 0), (TAIL + 1, TAIL), (LENGTH - 1, TAIL)])
def test_a_shorter_prompt_computes_its_last_token_itself(
    tiny: TinyHybrid, setup: Setup, length: int, reused: int
) -> None:
    owner = tiny.program(setup)
    answered(owner, prompt(LENGTH, 4))
    assert require_right(tiny, owner, prompt(LENGTH, 4)[:length]) == reused


def test_the_third_of_several_texts_starts_where_the_first_two_parted(tiny: TinyHybrid) -> None:
    owner = tiny.program()
    common = prompt(200, 5)
    reused = [require_right(tiny, owner, (*common, *prompt(40, 6 + i))) for i in range(4)]
    assert reused == [0, 0, 192, 192]
    # Of what is left out, another beginning is as good a first as any.
    assert require_right(tiny, owner, (*common[:150], *prompt(40, 20))) == 0
    assert require_right(tiny, owner, (*common[:150], *prompt(40, 21))) == 128


@pytest.mark.parametrize("setup", SETUPS, ids=str)
def test_a_live_row_is_as_good_a_source(tiny: TinyHybrid, setup: Setup) -> None:
    owner = tiny.program(setup)
    text = prompt(LENGTH, 7)
    first = open_row(owner, text, reuse=True)
    answer = start(owner, first)
    found = opened(owner, text)
    assert found.reused_tokens == LENGTH
    other = start(owner, found.sequence)
    owner.abort(decode(owner, [first, found.sequence]))
    for _ in range(3):
        more = commit_all(owner, decode(owner, [first, found.sequence]))
        answer, other = answer + more[0], other + more[1]
    tiny.require_greedy(text, answer)
    assert answer == other
    # What a live row computed since is of no use without a checkpoint.
    assert opened(owner, (*text, *answer)).reused_tokens == LENGTH


@pytest.mark.parametrize("setup", SETUPS, ids=str)
def test_rows_that_end_badly_leave_only_right_states(tiny: TinyHybrid, setup: Setup) -> None:
    owner = tiny.program(setup, prefill_chunk=32)
    text = prompt(LENGTH, 8)
    row = open_row(owner, text, reuse=True)
    owner.prefill(row, None)
    owner.release(row)
    assert require_right(tiny, owner, text) == 32
    row = open_row(owner, text, reuse=True)
    start(owner, row)
    batch = decode(owner, [row])
    tokens = batch.rows[0].tokens
    owner.commit(batch, [CommitDecision(1, terminal=True)])
    owner.commit(decode(owner, [row]), [CANCEL])
    require_right(tiny, owner, (*text, *tokens, *prompt(10, 9)))


@pytest.mark.parametrize("setup", SETUPS, ids=str)
def test_forced_tokens_are_part_of_what_is_kept(tiny: TinyHybrid, setup: Setup) -> None:
    owner = tiny.program(setup)
    text = prompt(LENGTH, 10)
    row = open_row(owner, text, reuse=True)
    answer = start(owner, row)
    forced = list(prompt(9, 11))
    owner.commit(owner.append_control(row, forced), [CommitDecision(6, terminal=True)])
    owner.release(row)
    assert require_right(tiny, owner, (*text, *answer, *forced[:6], 7, 8)) == LENGTH + 6


@pytest.mark.parametrize("setup", SETUPS, ids=str)
@pytest.mark.parametrize("route", ROUTES)
def test_a_sequence_that_paused_goes_on_and_can_be_continued(
    tiny: TinyHybrid, setup: Setup, route: ResumeRoute
) -> None:
    owner = tiny.program(setup)
    text = prompt(LENGTH, 12)
    row = open_row(owner, text, reuse=True)
    answer = start(owner, row) + continue_rows(owner, [row], 3)[0]
    state = owner.pause(row, route)
    stranger = open_row(owner, prompt(90, 13), reuse=True)
    start(owner, stranger)
    owner.release(stranger)
    row = owner.resume(state)
    if route is ResumeRoute.REPLAY:
        step = owner.replay(row)
        assert (step.computed_tokens, step.complete) == (0, True)
    answer += continue_rows(owner, [row], 3)[0]
    tiny.require_greedy(text, answer)
    owner.release(row)
    longer = (*text, *answer, *prompt(5, 14))
    assert require_right(tiny, owner, longer) == len(text) + len(answer) - 1


@pytest.mark.parametrize("setup", SETUPS, ids=str)
def test_a_replay_without_its_last_checkpoint_starts_at_an_earlier_one(
    tiny: TinyHybrid, setup: Setup
) -> None:
    owner = tiny.program(setup, state_checkpoint_bytes=2 * tiny.state_bytes)
    text = prompt(LENGTH, 15)
    other = open_row(owner, text, reuse=True)
    start(owner, other)
    row = open_row(owner, text, reuse=True)
    answer = start(owner, row) + continue_rows(owner, [row], 4)[0]
    state = owner.pause(row, ResumeRoute.REPLAY)
    owner.release(other)
    owner.release(open_row(owner, text, reuse=True))
    stranger = open_row(owner, prompt(20, 16), reuse=True)
    start(owner, stranger)
    owner.release(stranger)
    row = owner.resume(state)
    while not owner.replay(row).complete:
        pass
    answer += continue_rows(owner, [row], 3)[0]
    tiny.require_greedy(text, answer)


@pytest.mark.parametrize("setup", SETUPS, ids=str)
def test_a_drafter_reads_again_what_depends_on_the_next_token(
    tiny: TinyHybrid, setup: Setup
) -> None:
    owner = tiny.program(setup)
    text = prompt(LENGTH, 75)
    row = open_row(owner, text, reuse=True)
    answer = start(owner, row) + continue_rows(owner, [row], 2)[0]
    owner.abort(decode(owner, [row]))
    owner.release(row)
    other = (*text, *answer[:-1], (answer[-1] + 1) % 200, *prompt(20, 76))
    row = open_row(owner, other, reuse=True)
    start(owner, row)
    require_fresh_state(owner, tiny.program(setup, max_concurrency=1), row)


@pytest.mark.parametrize("setup", SETUPS, ids=str)
def test_no_prompt_starts_where_a_drafter_would_miss_entries(
    tiny: TinyHybrid, setup: Setup
) -> None:
    owner = tiny.program(setup)
    text, forced = prompt(LENGTH, 77), list(prompt(6, 78))
    row = open_row(owner, text, reuse=True)
    answer = start(owner, row)
    # The drafter reads forced tokens in the next round, which does not come.
    commit_all(owner, owner.append_control(row, forced))
    owner.release(row)
    within = (*text, *answer, *forced[:2])
    for reused in (LENGTH, LENGTH if setup.backend is not NONE else len(within)):
        found = opened(owner, within)
        assert found.reused_tokens == reused
        start(owner, found.sequence)
        require_fresh_state(owner, tiny.program(setup, max_concurrency=1), found.sequence)
        owner.release(found.sequence)


def test_no_budget_keeps_nothing(tiny: TinyHybrid) -> None:
    for budget in (0, tiny.state_bytes - 1):
        owner = tiny.program(state_checkpoint_bytes=budget)
        assert require_right(tiny, owner, prompt(LENGTH, 17)) == 0
        assert require_right(tiny, owner, prompt(LENGTH, 17)) == 0
        usage = owner.usage
        assert (usage.kv_cached_pages, usage.state_used_slots, usage.state_capacity_slots) == (
            0,
            0,
            4,
        )
        assert owner.memory.state_bytes == 4 * tiny.state_bytes


def test_a_request_may_keep_out_of_the_cache(tiny: TinyHybrid) -> None:
    owner = tiny.program()
    text = prompt(LENGTH, 18)
    row = open_row(owner, text, reuse=False)
    start(owner, row)
    assert opened(owner, text).reused_tokens == 0
    owner.release(row)
    assert (owner.usage.kv_cached_pages, owner.usage.state_used_slots) == (0, 1)
    answered(owner, text)
    assert owner.open(SequenceRequest(text, GREEDY, False)).reused_tokens == 0


def test_the_oldest_checkpoints_give_way_and_take_their_pages_along(tiny: TinyHybrid) -> None:
    owner = tiny.program(state_checkpoint_bytes=4 * tiny.state_bytes)
    assert owner.memory.state_bytes == 8 * tiny.state_bytes
    texts = [prompt(LENGTH, 40 + i) for i in range(6)]
    for text in texts:
        answered(owner, text)
        usage = owner.usage
        assert usage.state_used_slots <= 4
        assert usage.state_capacity_slots == 8
    # Every text leaves three, so that the newest is whole and the one before has only its end.
    assert usage.kv_cached_pages == 2 * 2
    assert [require_right(tiny, owner, text) for text in (texts[5], texts[0])] == [LENGTH, 0]


def test_what_is_used_stays(tiny: TinyHybrid) -> None:
    owner = tiny.program(state_checkpoint_bytes=4 * tiny.state_bytes)
    text = prompt(LENGTH, 50)
    answered(owner, text)
    for seed in range(51, 55):
        row = open_row(owner, prompt(20, seed), reuse=True)
        start(owner, row)
        owner.release(row)
        found = opened(owner, text)
        assert found.reused_tokens == LENGTH
        owner.release(found.sequence)


@pytest.mark.parametrize("setup", FEW_SETUPS, ids=str)
def test_prefixes_give_way_to_rows_with_their_checkpoints(tiny: TinyHybrid, setup: Setup) -> None:
    owner = tiny.program(setup, max_concurrency=2, max_context=256, kv_tokens=256)
    for seed in range(60, 66):
        require_right(tiny, owner, prompt(LENGTH, seed))
        assert owner.usage.kv_used_pages <= owner.usage.kv_capacity_pages == 4
    assert require_right(tiny, owner, prompt(LENGTH, 65)) == LENGTH
    assert require_right(tiny, owner, prompt(LENGTH, 60)) == 0
    held = owner.usage.state_used_slots
    require_right(tiny, owner, prompt(200, 70))
    assert owner.usage.state_used_slots <= held


@pytest.mark.parametrize("setup", FEW_SETUPS, ids=str)
def test_a_prefix_that_cannot_stay_beside_its_user_becomes_its_own(
    tiny: TinyHybrid, setup: Setup
) -> None:
    owner = tiny.program(setup, max_concurrency=1, max_context=256, kv_tokens=256)
    text = prompt(180, 71)
    answer = answered(owner, text)
    longer = (*text, *answer, *prompt(30, 72))
    found = opened(owner, longer)
    assert found.reused_tokens == len(text) + len(answer) - 1
    assert owner.usage.kv_cached_pages == 0
    said = start(owner, found.sequence) + continue_rows(owner, [found.sequence], 2)[0]
    tiny.require_greedy(longer, said)
    owner.release(found.sequence)
    # The beginning it took over is still one to start from.
    assert require_right(tiny, owner, text) == len(text)


def test_checkpoints_beyond_the_device_are_refused_by_their_size(tiny: TinyHybrid) -> None:
    shape = replace(tiny.program().shape, kv_tokens=1 << 48)
    pool = tiny.model.decoder.new_pool(1).recurrent
    with pytest.raises(ValueError, match=r"^state_checkpoint_bytes: no memory for \d+ recurrent"):
        reserved_slots(shape, pool, 1 << 62)


@pytest.mark.parametrize("form", FORMS[1:])
@pytest.mark.parametrize("backend", [NONE, MTP, DFLASH])
def test_rounds_on_a_device_start_at_checkpoints_too(
    tiny: TinyHybrid, tmp_path: Path, form: Form, backend: SpeculativeBackend
) -> None:
    device, rounds = form
    owner = TinyHybrid(tmp_path, device).program(Setup(backend, rounds), max_concurrency=2)
    text, known = prompt(LENGTH, 79), 0
    for turn in range(3):
        for reused in (known, len(text)):
            found = opened(owner, text)
            assert found.reused_tokens == reused
            answer = start(owner, found.sequence) + continue_rows(owner, [found.sequence], 5)[0]
            tiny.require_greedy(text, answer)
            owner.release(found.sequence)
        known = len(text) + len(answer) - 1
        text = (*text, *answer, *prompt(20, 80 + turn))
