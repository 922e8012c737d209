"""Pausing under memory pressure and coming back: who, in which order, by which route."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ninfer.contract import (
    EngineOptions,
    FinishReason,
    GenerationResult,
    IntegrityError,
    ResumeRoute,
    SchedulingEvent,
    SchedulingTransition,
    SequenceId,
)
from ninfer.runtime.engine import Engine
from ninfer.runtime.events import GenerationEnd, GenerationStart, PromptProgress
from ninfer.runtime.handle import GenerationHandle
from ninfer.runtime.queue import BYPASS_LIMIT
from support.engines import (
    ScriptedFrontend,
    prompt,
    request,
    run_until_idle,
    solo,
    stepped_engine,
)
from support.scripted_program import ScriptedProgram, hashed_logits
from support.scripted_session import CONTROL

T = SchedulingTransition
SMALL = {"kv_tokens": 64, "context_tokens": 64}


def pressed(
    requests: int, *, snapshot_bytes: int = 0, tokens: int = 40, **program: int
) -> tuple[Engine, list[GenerationHandle]]:
    """Return an engine whose requests outgrow the pool together."""
    options = EngineOptions(max_concurrency=8, host_snapshot_bytes=snapshot_bytes)
    engine, _ = stepped_engine(options=options, **(SMALL | program))
    handles = [
        engine.start(prompt(3, 4 + row), request("long", tokens=tokens, temperature=0.9, seed=row))
        for row in range(requests)
    ]
    return engine, handles


def expected(row: int, tokens: int = 40) -> tuple[int, ...]:
    options = request("long", tokens=tokens, temperature=0.9, seed=row)
    return solo((3, 4 + row), options, context_tokens=64).generated_token_ids


def transitions(handle: GenerationHandle) -> list[tuple[SchedulingTransition, ResumeRoute]]:
    return [(e.transition, e.route) for e in handle.take() if isinstance(e, SchedulingEvent)]


def starts(handle: GenerationHandle) -> int:
    return sum(isinstance(event, GenerationStart) for event in handle.take())


def results(handles: list[GenerationHandle]) -> list[GenerationResult]:
    return [handle.wait(timeout=0) for handle in handles]


@pytest.mark.parametrize("snapshot_bytes", [0, 1 << 20])
def test_paused_requests_answer_what_they_would_have_answered(snapshot_bytes: int) -> None:
    engine, handles = pressed(5, snapshot_bytes=snapshot_bytes)
    run_until_idle(engine)
    for row, result in enumerate(results(handles)):
        assert result.generated_token_ids == expected(row)
    reports = [handle.wait(timeout=0).scheduling for handle in handles]
    assert reports[0].preemptions == 0
    assert sum(report.preemptions for report in reports) > 0
    restores = sum(report.snapshot_restores for report in reports)
    replays = sum(report.replay_restores for report in reports)
    assert restores + replays == sum(report.preemptions for report in reports)
    if snapshot_bytes:
        assert restores > 0
        assert sum(report.host_to_device_bytes for report in reports) > 0
    else:
        assert restores == 0
        assert sum(report.replayed_tokens for report in reports) > 0
        assert sum(report.device_to_host_bytes for report in reports) == 0


def test_two_long_answers_share_a_pool_of_one_context() -> None:
    for budget, route in ((0, ResumeRoute.REPLAY), (512 << 20, ResumeRoute.SNAPSHOT)):
        options = EngineOptions(max_concurrency=2, host_snapshot_bytes=budget)
        pool = {"kv_tokens": 1024, "context_tokens": 1024, "page_tokens": 16}
        engine, _ = stepped_engine(options=options, **pool)
        handles = [
            engine.start(prompt(3, 4 + row), request("long", tokens=650)) for row in range(2)
        ]
        run_until_idle(engine)
        events = transitions(handles[1])
        assert transitions(handles[0]) == []
        assert (T.PAUSED, route) in events
        for row, handle in enumerate(handles):
            alone = solo((3, 4 + row), request("long", tokens=650), **pool)
            assert handle.wait(timeout=0).generated_token_ids == alone.generated_token_ids


def test_the_youngest_is_set_aside_and_the_oldest_is_never() -> None:
    engine, handles = pressed(4)
    order: list[int] = []
    while not engine.is_idle:
        engine.run_cycle()
        for row, handle in enumerate(handles):
            order += [row for step, _ in transitions(handle) if step is T.PAUSED]
    assert order[0] == 3
    assert 0 not in order


def test_paused_requests_come_back_in_their_original_order() -> None:
    engine, handles = pressed(4)
    order: list[int] = []
    while not engine.is_idle:
        engine.run_cycle()
        for row, handle in enumerate(handles):
            order += [row for step, _ in transitions(handle) if step is T.RESTORED]
    assert [order.index(row) for row in (1, 2, 3) if row in order] == sorted(
        order.index(row) for row in (1, 2, 3) if row in order
    )


@pytest.mark.parametrize("snapshot_bytes", [0, 1 << 20])
def test_a_pause_shows_every_step_with_its_route(snapshot_bytes: int) -> None:
    engine, handles = pressed(2, snapshot_bytes=snapshot_bytes, tokens=50)
    run_until_idle(engine)
    route = ResumeRoute.SNAPSHOT if snapshot_bytes else ResumeRoute.REPLAY
    steps = [
        (T.PAUSE_STARTED, route),
        (T.PAUSED, route),
        (T.RESTORE_STARTED, route),
        (T.RESTORED, route),
        *([] if snapshot_bytes else [(T.REPLAY_COMPLETE, route)]),
        (T.RECOVERY_COMPLETE, ResumeRoute.NONE),
        (T.TERMINAL, ResumeRoute.NONE),
    ]
    assert transitions(handles[1]) == steps
    assert handles[1].wait(timeout=0).scheduling.paused_ns > 0


def test_at_most_one_restored_request_is_protected() -> None:
    engine, handles = pressed(6)
    protected: set[int] = set()
    while not engine.is_idle:
        engine.run_cycle()
        for row, handle in enumerate(handles):
            for step, _ in transitions(handle):
                if step is T.RESTORE_STARTED:
                    protected.add(row)
                elif step in (T.RECOVERY_COMPLETE, T.TERMINAL):
                    protected.discard(row)
        assert len(protected) <= 1


def test_an_elder_request_takes_the_snapshot_room_of_a_younger_one() -> None:
    # One snapshot fits; the younger one is paused first and must give way to the elder.
    engine, handles = pressed(3, snapshot_bytes=3500, tokens=50)
    run_until_idle(engine)
    seen = transitions(handles[2])
    assert (T.PAUSED, ResumeRoute.SNAPSHOT) in seen
    assert (T.SNAPSHOT_REVOKED, ResumeRoute.REPLAY) in seen
    assert (T.PAUSED, ResumeRoute.SNAPSHOT) in transitions(handles[1])
    for row, result in enumerate(results(handles)):
        assert result.generated_token_ids == expected(row, 50)


def test_a_pause_publishes_nothing_twice() -> None:
    engine, handles = pressed(3)
    run_until_idle(engine)
    for row, handle in enumerate(handles):
        events = handle.take()
        assert sum(isinstance(event, GenerationStart) for event in events) == 1
        text = "".join(getattr(event, "text", "") for event in events)
        assert text == "".join(f"<{token}>" for token in expected(row))


def test_a_request_paused_before_its_first_token_starts_its_prompt_again() -> None:
    engine, _ = stepped_engine(
        options=EngineOptions(max_concurrency=2), prefill_chunk_tokens=4, **SMALL
    )
    elder = engine.start(prompt(*[3] * 30), request("long", tokens=30))
    younger = engine.start(prompt(*[4] * 40), request("even"))
    run_until_idle(engine)
    result = younger.wait(timeout=0)
    assert result.scheduling.preemptions > 0
    assert result.generated_token_ids == solo([4] * 40, request("even")).generated_token_ids
    assert elder.wait(timeout=0).scheduling.preemptions == 0


def test_a_prompt_that_starts_again_is_counted_and_shown_as_computed_once() -> None:
    engine, _ = stepped_engine(
        options=EngineOptions(max_concurrency=2), prefill_chunk_tokens=4, **SMALL
    )
    elder = engine.start(prompt(*[3] * 30), request("long", tokens=30))
    younger = engine.start(prompt(*[4] * 40), request("even"))
    run_until_idle(engine)
    events = list(younger)
    shown = [event.computed_tokens for event in events if isinstance(event, PromptProgress)]
    assert shown.count(40) == 1
    assert shown[-1] == 40
    end = events[-1]
    assert isinstance(end, GenerationEnd)
    assert end.result.reused_prompt_tokens + end.result.computed_prefill_tokens == 40
    assert end.result.scheduling.replayed_tokens == 4 * len(shown) - 40 > 0
    assert elder.is_settled


@pytest.mark.parametrize("reused", [0, 3, 5, 12, 20])
def test_what_lay_in_memory_and_what_is_computed_again_add_up(reused: int) -> None:
    engine, _ = stepped_engine()
    handle = engine.start(prompt(*[3] * 20), request())
    (waiting,) = engine._inbox.collect()
    waiting.reused_tokens, waiting.computed_tokens = 4, 8
    waiting.prompt_starts_again(reused)
    assert waiting.reused_tokens + waiting.computed_tokens == reused
    assert min(waiting.reused_tokens, waiting.computed_tokens) >= 0
    assert waiting.computed_tokens <= 8
    assert waiting.scheduling.replayed_tokens == max(12 - reused, 0)
    handle.close()


def test_forced_control_survives_a_pause() -> None:
    engine, _ = stepped_engine(
        options=EngineOptions(max_concurrency=2), kv_tokens=32, context_tokens=32, page_tokens=2
    )
    options = request("free", budget=4, tokens=25, temperature=0.9)
    elder = engine.start(prompt(3, 3), request("long", tokens=25))
    younger = engine.start(prompt(3, 31), options)
    run_until_idle(engine)
    result = younger.wait(timeout=0)
    assert result.scheduling.preemptions > 0
    assert CONTROL == result.generated_token_ids[4:7]
    alone = solo((3, 31), options, context_tokens=32)
    assert result.generated_token_ids == alone.generated_token_ids
    assert result.output == alone.output
    assert result.thinking == alone.thinking
    assert elder.is_settled


def test_fitting_requests_may_pass_a_paused_one_but_not_for_ever() -> None:
    options = EngineOptions(max_concurrency=3, max_pending_requests=64)
    engine, _ = stepped_engine(options=options, **SMALL)
    elder = engine.start(prompt(3), request("long", tokens=60))
    younger = engine.start(prompt(4), request("long", tokens=60))
    while not engine.stats().requests_paused:
        engine.run_cycle()
    small = [engine.start(prompt(5), request("one")) for _ in range(20)]
    passed = 0
    engine.run_cycle()
    while not any(step is T.RESTORED for step, _ in transitions(younger)):
        passed += sum(starts(handle) for handle in small)
        engine.run_cycle()
    assert passed == BYPASS_LIMIT
    run_until_idle(engine)
    assert all(handle.is_settled for handle in (elder, younger, *small))


class FullProgram(ScriptedProgram):
    """Never has room."""

    def can_advance(
        self, sequences: Sequence[SequenceId], control_tokens: Sequence[int] = ()
    ) -> int:
        return 0


def test_a_program_without_room_for_one_sequence_is_an_integrity_error() -> None:
    engine = Engine(FullProgram(hashed_logits(32)), ScriptedFrontend(), threaded=False)
    held = engine.start(prompt(3), request("long", tokens=7))
    with pytest.raises(IntegrityError, match="single sequence"):
        engine.run_cycle()
    assert not held.is_settled


def test_a_pool_smaller_than_the_context_bounds_the_answer() -> None:
    engine, _ = stepped_engine(kv_tokens=8, context_tokens=64)
    handle = engine.start(prompt(3), request("long", tokens=None))
    run_until_idle(engine)
    result = handle.wait(timeout=0)
    assert len(result.generated_token_ids) == 7
    assert result.finish_reason is FinishReason.CONTEXT_CAPACITY
