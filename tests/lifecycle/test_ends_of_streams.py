"""Nobody waits for what will not come: ends that were read, handles let go, listeners that die."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from ninfer.contract import FinishReason
from ninfer.runtime.engine import Engine
from ninfer.runtime.events import GenerationEnd
from ninfer.runtime.handle import GenerationHandle
from ninfer.runtime.prepared import Cancellation
from support.engines import prompt, request, run_until_idle, stepped_engine, threaded_engine

Reader = Callable[[GenerationHandle], object]


async def _read_async(handle: GenerationHandle) -> list[object]:
    return [event async for event in handle]


def _read_by_next(handle: GenerationHandle) -> list[object]:
    return list(iter(handle.next, None))


READERS: dict[str, Reader] = {
    "next": _read_by_next,
    "iteration": list,
    "async iteration": lambda handle: asyncio.run(_read_async(handle)),
}


@pytest.fixture
def held() -> Iterator[tuple[Engine, threading.Event]]:
    """Yield an engine whose second decode round waits for an event."""
    opened, rounds = threading.Event(), iter(range(1, 1_000_000))

    def fault(name: str) -> None:
        if name == "decode" and next(rounds) >= 2:
            assert opened.wait(10)

    with threaded_engine(fault=fault) as engine:
        yield engine, opened
        opened.set()


def in_thread(work: Callable[[], object]) -> Callable[[], object]:
    """Start work on a thread of its own; return how to get its result within seconds."""
    results: list[object] = []
    thread = threading.Thread(target=lambda: results.append(work()), daemon=True)
    thread.start()

    def join() -> object:
        thread.join(10)
        assert not thread.is_alive(), "still waiting for what does not come"
        return results[0]

    return join


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
@pytest.mark.parametrize("first", ["wait", "read"])
def test_a_stream_that_was_read_has_nothing_more(reader: Reader, first: str) -> None:
    engine, _ = stepped_engine()
    handle = engine.start(prompt(3, 4), request("even"))
    run_until_idle(engine)
    if first == "wait":
        handle.wait(timeout=0)
    else:
        assert isinstance(list(handle)[-1], GenerationEnd)
    assert in_thread(lambda: reader(handle))() == []
    assert handle.next() is None
    assert handle.take() == []
    assert handle.wait(timeout=0).finish_reason is FinishReason.STOP_TOKEN


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_closing_a_handle_ends_the_stream_that_another_thread_reads(
    reader: Reader, held: tuple[Engine, threading.Event]
) -> None:
    engine, opened = held
    handle = engine.start(prompt(3, 4), request("long", tokens=200))
    read = in_thread(lambda: reader(handle))
    handle.close()
    events = read()
    assert isinstance(events, list)
    assert not any(isinstance(event, GenerationEnd) for event in events)
    opened.set()


def test_closing_a_handle_gives_the_result_to_whoever_waits_for_it(
    held: tuple[Engine, threading.Event],
) -> None:
    engine, opened = held
    handle = engine.start(prompt(3, 4), request("long", tokens=200))
    waited = in_thread(lambda: handle.wait().finish_reason)
    handle.close()
    opened.set()
    assert waited() is FinishReason.CANCELLED


def test_readers_of_one_stream_share_its_events_and_all_end() -> None:
    async def read_twice(handle: GenerationHandle) -> list[list[object]]:
        return await asyncio.gather(_read_async(handle), _read_async(handle))

    heard = []
    with threaded_engine(fault=lambda name: time.sleep(0.001)) as engine:
        handle = engine.start(prompt(3, 4), request("long", tokens=9))
        handle.listen(lambda: heard.append(True))
        streams = in_thread(lambda: asyncio.run(read_twice(handle)))()
    assert isinstance(streams, list)
    ends = [event for stream in streams for event in stream if isinstance(event, GenerationEnd)]
    assert len(ends) == 1
    assert heard


@pytest.mark.parametrize("error", [asyncio.CancelledError, SystemExit, KeyboardInterrupt])
def test_a_listener_harms_only_itself_whatever_it_raises(error: type[BaseException]) -> None:
    def listener() -> None:
        raise error

    with threaded_engine() as engine:
        handle = engine.start(prompt(3, 4), request("one"))
        handle.listen(listener)
        assert handle.wait(timeout=10).content == "<7>"
        assert engine.generate(prompt(3), request("one")).content == "<7>"


@pytest.mark.parametrize("leave", [GenerationHandle.close, GenerationHandle.cancel])
def test_a_handle_ends_its_own_request_and_none_that_shares_the_cancellation(
    leave: Callable[[GenerationHandle], None],
) -> None:
    shared = Cancellation()
    engine, _ = stepped_engine()
    left, kept = (
        engine.start(prompt(3, row), request("long", tokens=9), cancellation=shared)
        for row in range(2)
    )
    engine.run_cycle()
    leave(left)
    run_until_idle(engine)
    assert left.wait(timeout=0).finish_reason is FinishReason.CANCELLED
    assert kept.wait(timeout=0).finish_reason is FinishReason.OUTPUT_LIMIT
    assert not shared.is_cancelled


def test_a_cancellation_does_not_grow_with_the_requests_it_covered() -> None:
    shared = Cancellation()
    engine, _ = stepped_engine()
    for row in range(20):
        engine.start(prompt(3, row), request("one"), cancellation=shared)
        run_until_idle(engine)
    assert len(shared._watchers) == 0
