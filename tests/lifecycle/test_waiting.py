"""Who leaves the queue next, who passes whom, and who waited too long."""

from __future__ import annotations

import time

import pytest

from ninfer.contract import EngineOptions, FinishReason, QueueTimeout
from ninfer.runtime.engine import Engine
from ninfer.runtime.events import GenerationStart
from ninfer.runtime.handle import GenerationHandle
from ninfer.runtime.queue import BYPASS_LIMIT
from support.engines import (
    Clock,
    prompt,
    request,
    run_until_idle,
    stepped_engine,
    threaded_engine,
)


def started(handles: list[GenerationHandle]) -> list[int]:
    """Return which handles were admitted since the last call."""
    return [
        index
        for index, handle in enumerate(handles)
        if any(isinstance(event, GenerationStart) for event in handle.take())
    ]


def test_requests_are_admitted_in_submit_order() -> None:
    engine, _ = stepped_engine(options=EngineOptions(max_concurrency=2))
    handles = [engine.start(prompt(3, 4 + row), request("long", tokens=4)) for row in range(5)]
    order: list[list[int]] = []
    while not engine.is_idle or not order:
        engine.run_cycle()
        if new := started(handles):
            order.append(new)
    assert [index for group in order for index in group] == [0, 1, 2, 3, 4]
    assert order[0] == [0, 1]


def crowd(small: int) -> tuple[Engine, GenerationHandle, list[GenerationHandle]]:
    """Return a resident that half fills the pool, then a head too big for the rest, then small."""
    engine, _ = stepped_engine(
        options=EngineOptions(max_concurrency=8, max_pending_requests=64),
        kv_tokens=64,
        context_tokens=64,
        prefill_chunk_tokens=64,
    )
    resident = engine.start(prompt(*[3] * 30), request("long", tokens=30))
    engine.run_cycle()
    head = engine.start(prompt(*[4] * 50), request("long", tokens=4))
    others = [engine.start(prompt(5, 6), request("long", tokens=1)) for _ in range(small)]
    return engine, resident, [head, *others]


def test_a_head_that_does_not_fit_lets_a_few_pass() -> None:
    engine, resident, handles = crowd(3)
    engine.run_cycle()
    assert started(handles) == [1, 2, 3]
    run_until_idle(engine)
    assert all(handle.is_settled for handle in (resident, *handles))


def test_a_head_that_does_not_fit_is_not_passed_for_ever() -> None:
    engine, resident, handles = crowd(BYPASS_LIMIT + 4)
    order: list[int] = []
    while not engine.is_idle:
        engine.run_cycle()
        order += started(handles)
    assert order.index(0) == BYPASS_LIMIT
    assert resident.wait(timeout=0).finish_reason is FinishReason.OUTPUT_LIMIT


def test_a_request_that_waits_past_its_deadline_is_refused() -> None:
    clock = Clock()
    options = EngineOptions(max_concurrency=1, pending_timeout_ms=1000)
    engine, _ = stepped_engine(options=options, clock=clock)
    first = engine.start(prompt(3), request("long", tokens=20))
    second = engine.start(prompt(4), request())
    engine.run_cycle()
    clock.seconds += 1.0
    engine.run_cycle()
    with pytest.raises(QueueTimeout, match="before the request was admitted"):
        second.wait(timeout=0)
    run_until_idle(engine)
    assert first.wait(timeout=0).finish_reason is FinishReason.OUTPUT_LIMIT


def test_the_deadline_begins_before_preparation() -> None:
    clock = Clock()
    options = EngineOptions(max_concurrency=1, pending_timeout_ms=1000)
    engine, _ = stepped_engine(options=options, clock=clock)
    deadline = engine.deadline()
    clock.seconds += 0.9
    handle = engine.submit(engine.prepare(prompt(3)), request(), deadline=deadline)
    clock.seconds += 0.2
    engine.run_cycle()
    with pytest.raises(QueueTimeout):
        handle.wait(timeout=0)


def test_prefill_chunks_take_turns_and_never_hold_up_decoding() -> None:
    engine, program = stepped_engine(prefill_chunk_tokens=4)
    short = engine.start(prompt(3), request("long", tokens=9))
    engine.run_cycle()
    engine.run_cycle()
    long = [engine.start(prompt(*[4 + row] * 12), request("long", tokens=2)) for row in range(2)]
    program.log.clear()
    for _ in range(3):
        engine.run_cycle()
    assert [entry for entry in program.log if entry in ("decode", "prefill")] == [
        "decode",
        "prefill",
    ] * 3
    run_until_idle(engine)
    units = [handle.wait(timeout=0).engine_timing.prefill_units for handle in long]
    assert units == [3, 3]
    assert short.is_settled


@pytest.mark.parametrize("lanes", [1, 2, 3])
@pytest.mark.parametrize("tokens", [0, 1, 5])
def test_whoever_waits_goes_on_when_every_lane_becomes_free_at_once(
    lanes: int, tokens: int
) -> None:
    def work(name: str) -> None:
        time.sleep(0.001)

    options = EngineOptions(max_concurrency=lanes, pending_timeout_ms=60_000)
    with threaded_engine(options=options, fault=work) as engine:
        handles = [engine.start(prompt(3, row), request(tokens=tokens)) for row in range(9)]
        # Nothing else happens that would wake the worker: no arrival, no cancellation.
        for handle in handles:
            handle.wait(timeout=10)
