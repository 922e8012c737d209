"""Cancelling at every phase of a request's life, and consumers that go away."""

from __future__ import annotations

import asyncio
import gc
import threading
import time

import pytest

from ninfer.contract import (
    ConstraintDeadEnd,
    EngineOptions,
    FinishReason,
    OutputDelta,
    SchedulingEvent,
    SchedulingTransition,
)
from ninfer.runtime.events import GenerationEnd, GenerationStart, PromptProgress
from ninfer.runtime.prepared import Cancellation
from support.engines import prompt, request, run_until_idle, solo, stepped_engine, threaded_engine

ONE_LANE = EngineOptions(max_concurrency=1)


def test_a_waiting_request_ends_at_once_and_empty() -> None:
    engine, program = stepped_engine(options=ONE_LANE)
    running = engine.start(prompt(3), request("long", tokens=9))
    waiting = engine.start(prompt(4), request("even"))
    engine.run_cycle()
    waiting.cancel()
    engine.run_cycle()
    result = waiting.wait(timeout=0)
    assert result.finish_reason is FinishReason.CANCELLED
    assert (result.generated_token_ids, result.content) == ((), "")
    assert program.log.count("open") == 1
    assert not running.is_settled


def test_a_prefilling_request_gives_its_row_back() -> None:
    engine, program = stepped_engine(options=ONE_LANE, prefill_chunk_tokens=4)
    handle = engine.start(prompt(*[3] * 20), request("even"))
    engine.run_cycle()
    handle.cancel()
    engine.run_cycle()
    assert handle.wait(timeout=0).finish_reason is FinishReason.CANCELLED
    assert program.usage.rows_used == 0
    assert engine.is_idle


def test_a_decoding_request_keeps_what_it_committed() -> None:
    engine, program = stepped_engine()
    handle = engine.start(prompt(3, 4), request("long", tokens=20))
    other = engine.start(prompt(3, 5), request("even"))
    for _ in range(4):
        engine.run_cycle()
    handle.cancel()
    run_until_idle(engine)
    result = handle.wait(timeout=0)
    whole = solo((3, 4), request("long", tokens=20)).generated_token_ids
    count = len(result.generated_token_ids)
    assert 0 < count < 20
    assert result.generated_token_ids == whole[:count]
    assert result.content == "".join(f"<{token}>" for token in whole[:count])
    expected = solo((3, 5), request("even")).generated_token_ids
    assert other.wait(timeout=0).generated_token_ids == expected
    assert program.usage.rows_used == 0


def test_cancelling_an_ended_request_changes_nothing() -> None:
    engine, _ = stepped_engine()
    handle = engine.start(prompt(3, 4), request("one"))
    run_until_idle(engine)
    handle.cancel()
    engine.run_cycle()
    assert handle.wait(timeout=0).finish_reason is FinishReason.STOP_TOKEN


@pytest.mark.parametrize("snapshot_bytes", [0, 1 << 20])
def test_a_paused_request_drops_what_it_kept(snapshot_bytes: int) -> None:
    engine, program = stepped_engine(
        options=EngineOptions(max_concurrency=2, host_snapshot_bytes=snapshot_bytes),
        kv_tokens=64,
        context_tokens=64,
    )
    elder = engine.start(prompt(3), request("long", tokens=50))
    younger = engine.start(prompt(4), request("long", tokens=50))
    while engine.stats().requests_paused == 0:
        engine.run_cycle()
    assert program.host_bytes == (0 if snapshot_bytes == 0 else engine.stats().host_context_bytes)
    younger.cancel()
    engine.run_cycle()
    assert program.host_bytes == 0
    events = [event for event in younger.take() if isinstance(event, SchedulingEvent)]
    assert events[-1].transition is SchedulingTransition.TERMINAL
    assert younger.wait(timeout=0).finish_reason is FinishReason.CANCELLED
    run_until_idle(engine)
    expected = solo((3,), request("long", tokens=50), context_tokens=64).generated_token_ids
    assert elder.wait(timeout=0).generated_token_ids == expected


def test_a_dropped_handle_cancels_its_request() -> None:
    engine, program = stepped_engine()
    handle = engine.start(prompt(3, 4), request("long", tokens=200))
    engine.run_cycle()
    del handle
    gc.collect()
    engine.run_cycle()
    assert engine.is_idle
    assert program.usage.rows_used == 0
    assert engine.stats().outcomes["cancelled"] == 1


def test_a_consumer_that_leaves_its_stream_cancels_the_request() -> None:
    with threaded_engine() as engine:
        for event in engine.start(prompt(3, 4), request("long", tokens=200)):
            if isinstance(event, OutputDelta):
                break
        del event
        gc.collect()
        wait_until(lambda: engine.stats().requests_outstanding == 0)
        assert engine.stats().outcomes["cancelled"] == 1


def test_a_consumer_that_never_reads_does_not_hold_up_the_others() -> None:
    with threaded_engine() as engine:
        sleeper = engine.start(prompt(3, 4), request("long", tokens=200))
        result = engine.generate(prompt(3, 5), request("long", tokens=200))
        assert len(result.generated_token_ids) == 200
        assert len(sleeper.wait(timeout=10).generated_token_ids) == 200


def test_a_listener_that_fails_harms_only_itself() -> None:
    def listener() -> None:
        raise RuntimeError("the event loop is closed")

    engine, _ = stepped_engine()
    handle = engine.start(prompt(3, 4), request("one"))
    handle.listen(listener)
    run_until_idle(engine)
    assert handle.wait(timeout=0).content == "<7>"


def test_a_stream_starts_once_shows_progress_and_ends_with_the_result() -> None:
    engine, _ = stepped_engine(prefill_chunk_tokens=4)
    handle = engine.start(prompt(*[3] * 9), request("even"))
    run_until_idle(engine)
    events = list(handle)
    assert [type(event) for event in events[:4]] == [GenerationStart, *[PromptProgress] * 3]
    assert [e.computed_tokens for e in events if isinstance(e, PromptProgress)] == [4, 8, 9]
    end = events[-1]
    assert isinstance(end, GenerationEnd)
    text = "".join(event.text for event in events if isinstance(event, OutputDelta))
    assert text == end.result.content


def test_a_failed_stream_gives_its_text_and_then_the_error() -> None:
    engine, _ = stepped_engine()
    handle = engine.start(prompt(3, 9), request("dead"))
    run_until_idle(engine)
    texts = []
    with pytest.raises(ConstraintDeadEnd):
        texts.extend(event.text for event in handle if isinstance(event, OutputDelta))
    assert engine.stats().requests_outstanding == 0


def test_an_async_consumer_sees_the_same_stream() -> None:
    async def collect() -> list[object]:
        handle = engine.start(prompt(3, 5), request("even"))
        return [event async for event in handle]

    with threaded_engine() as engine:
        events = asyncio.run(collect())
        assert isinstance(events[0], GenerationStart)
        assert isinstance(events[-1], GenerationEnd)
        assert events[-1].result.content == engine.generate(prompt(3, 5), request("even")).content


def test_an_event_loop_that_closes_leaves_no_request_behind() -> None:
    async def abandon() -> None:
        async for event in engine.start(prompt(3, 4), request("long", tokens=250)):
            if isinstance(event, OutputDelta):
                return

    with threaded_engine() as engine:
        asyncio.run(abandon())
        gc.collect()
        wait_until(lambda: engine.stats().requests_outstanding == 0)
        assert engine.generate(prompt(3), request("one")).content == "<7>"


def test_waiting_for_the_next_event_has_a_limit() -> None:
    engine, _ = stepped_engine()
    handle = engine.start(prompt(3, 4), request("one"))
    assert handle.next(timeout=0.01) is None
    with pytest.raises(TimeoutError):
        handle.wait(timeout=0.01)
    assert not handle.is_settled


def test_cancelling_from_another_thread_wakes_the_worker() -> None:
    with threaded_engine(options=ONE_LANE) as engine:
        handle = engine.start(prompt(3, 4), request("long", tokens=250))
        threading.Thread(target=handle.cancel).start()
        assert handle.wait(timeout=10).finish_reason in (
            FinishReason.CANCELLED,
            FinishReason.OUTPUT_LIMIT,
        )


def test_a_cancellation_object_reaches_a_request_in_every_phase() -> None:
    engine, _ = stepped_engine(options=ONE_LANE)
    first, second = Cancellation(), Cancellation()
    running = engine.start(prompt(3), request("long", tokens=20), cancellation=first)
    waiting = engine.start(prompt(4), request("long", tokens=20), cancellation=second)
    engine.run_cycle()
    for cancellation in (first, second):
        cancellation.cancel()
    engine.run_cycle()
    for handle in (running, waiting):
        assert handle.wait(timeout=0).finish_reason is FinishReason.CANCELLED


def wait_until(condition, seconds: float = 10.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.002)
