"""How an engine ends: drained, closed, or broken; and what everyone is told."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from ninfer.contract import (
    DeviceFailure,
    EngineOptions,
    EngineUnavailable,
    IntegrityError,
    NInferError,
    NonFiniteLogits,
)
from ninfer.runtime.engine import Engine
from ninfer.runtime.inbox import EngineState
from ninfer.runtime.log_writer import JsonLinesLog
from ninfer.runtime.request import EngineRequest
from ninfer.runtime.request_log import SilentLog
from support.engines import ScriptedFrontend, prompt, request, stepped_engine, threaded_engine
from support.scripted_program import ScriptedProgram, hashed_logits


def worker_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "ninfer-worker"]


def terminal_events(path: Path) -> dict[int, list[str]]:
    """Return the terminal events of every request in a log."""
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    found: dict[int, list[str]] = {}
    for record in records:
        if record["event"] == "request_start":
            found[record["request"]["id"]] = []
        elif record["event"] in ("request_done", "request_error"):
            found[record["request"]["id"]].append(record["event"])
    return found


class Gate:
    """A fault that holds the worker inside its nth decode round, or raises there."""

    def __init__(self, rounds: int, error: Exception | None = None) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()
        self._rounds = rounds
        self._error = error

    def __call__(self, name: str) -> None:
        if name != "decode":
            return
        self._rounds -= 1
        if self._rounds == 0:
            self.reached.set()
            assert self.open.wait(10)
            if self._error is not None:
                raise self._error


def test_closing_fails_what_is_left_and_leaves_no_thread() -> None:
    gate = Gate(2)
    engine = threaded_engine(fault=gate, options=EngineOptions(max_concurrency=1))
    running = engine.start(prompt(3), request("long", tokens=200))
    waiting = engine.start(prompt(4), request("long", tokens=200))
    assert gate.reached.wait(10)
    closer = threading.Thread(target=engine.close)
    closer.start()
    gate.open.set()
    closer.join(10)
    assert not closer.is_alive()
    for handle in (running, waiting):
        with pytest.raises(EngineUnavailable, match="closed before"):
            handle.wait(timeout=1)
    assert engine.state is EngineState.CLOSED
    assert worker_threads() == []
    assert engine.stats().requests_outstanding == 0


def test_draining_answers_what_is_there_and_takes_no_more() -> None:
    gate = Gate(1)
    engine = threaded_engine(fault=gate)
    handle = engine.start(prompt(3), request("even"))
    assert gate.reached.wait(10)
    closer = threading.Thread(target=engine.close, kwargs={"drain_seconds": 10.0})
    closer.start()
    while engine.state is EngineState.OPEN:
        pass
    with pytest.raises(EngineUnavailable, match="draining"):
        engine.start(prompt(3), request())
    assert not engine.is_available
    gate.open.set()
    closer.join(10)
    assert handle.wait(timeout=1).generated_token_ids
    assert worker_threads() == []


def test_a_drain_that_takes_too_long_fails_the_rest() -> None:
    gate = Gate(1)
    engine = threaded_engine(fault=gate)
    handle = engine.start(prompt(3), request("long", tokens=200))
    assert gate.reached.wait(10)
    threading.Timer(0.05, gate.open.set).start()
    engine.close(drain_seconds=0.01)
    with pytest.raises(EngineUnavailable):
        handle.wait(timeout=1)


def test_closing_is_bounded_while_the_device_hangs() -> None:
    gate = Gate(1)
    engine = threaded_engine(fault=gate)
    handles = [engine.start(prompt(3, row), request("long", tokens=9)) for row in range(3)]
    assert gate.reached.wait(10)
    with pytest.raises(DeviceFailure, match="still running"):
        engine.close(stop_seconds=0.05)
    for handle in handles:
        with pytest.raises(EngineUnavailable, match="did not answer"):
            handle.wait(timeout=1)
    gate.open.set()
    for thread in worker_threads():
        thread.join(10)
    assert worker_threads() == []
    with pytest.raises(EngineUnavailable):
        handles[0].wait(timeout=1)


def test_closing_over_a_hanging_device_also_ends_who_just_arrived(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    gate = Gate(1)
    engine = Engine(
        ScriptedProgram(hashed_logits(32), fault=gate), ScriptedFrontend(), log=JsonLinesLog(path)
    )
    handles = [engine.start(prompt(3), request("long", tokens=9))]
    assert gate.reached.wait(10)
    handles.append(engine.start(prompt(4), request("long", tokens=9)))
    with pytest.raises(DeviceFailure, match="still running"):
        engine.close(stop_seconds=0.05)
    for handle in handles:
        with pytest.raises(EngineUnavailable, match="did not answer"):
            handle.wait(timeout=1)
    assert terminal_events(path) == {1: ["request_error"], 2: ["request_error"]}
    gate.open.set()
    for thread in worker_threads():
        thread.join(10)
    assert engine.stats().outcomes["failed"] == 2
    assert engine.stats().requests_outstanding == 0


def test_a_request_that_arrives_as_the_engine_stops_is_told() -> None:
    engine, _ = stepped_engine()
    inbox = engine._inbox
    collect, late = inbox.collect, []

    def collect_then_stop(timeout: float | None = 0.0) -> list[EngineRequest]:
        arrivals = collect(timeout)
        if not late:
            late.append(engine.start(prompt(3), request("long")))
            inbox.move_to(EngineState.STOPPING)
        return arrivals

    inbox.collect = collect_then_stop  # type: ignore[method-assign]
    engine.run_cycle()
    with pytest.raises(EngineUnavailable, match="closed before"):
        late[0].wait(timeout=1)


@pytest.mark.parametrize("name", ["start", "done", "error", "scheduling"])
def test_a_log_that_raises_leaves_nobody_waiting(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("the log is broken")

    log = SilentLog()
    monkeypatch.setattr(log, name, fail, raising=True)
    engine = Engine(
        ScriptedProgram(hashed_logits(32), context_tokens=64, kv_tokens=64),
        ScriptedFrontend(),
        EngineOptions(max_concurrency=3),
        log=log,
    )
    handles = []
    with suppress(EngineUnavailable):
        for rule in ("dead", "one", "long", "long"):
            handles.append(engine.start(prompt(3), request(rule, tokens=60)))
    for handle in handles:
        with suppress(NInferError):
            handle.wait(timeout=10)
    assert all(handle.is_settled for handle in handles)
    engine.close()


def test_a_closed_engine_shows_no_memory_in_use() -> None:
    engine, _ = stepped_engine(
        options=EngineOptions(max_concurrency=2), context_tokens=64, kv_tokens=64
    )
    handles = [engine.start(prompt(3, row), request("long", tokens=60)) for row in range(3)]
    while not engine.stats().host_context_bytes:
        engine.run_cycle()
    assert engine.stats().usage.rows_used > 0
    engine.close()
    stats = engine.stats()
    assert (stats.usage.rows_used, stats.usage.kv_used_pages, stats.host_context_bytes) == (0, 0, 0)
    assert all(handle.is_settled for handle in handles)


def test_closing_twice_is_closing_once() -> None:
    engine = threaded_engine()
    engine.close()
    engine.close()
    with pytest.raises(EngineUnavailable, match="closed"):
        engine.prepare(prompt(3))


def test_an_engine_nobody_holds_ends_its_thread() -> None:
    engine = threaded_engine()
    (thread,) = worker_threads()
    del engine
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.parametrize(
    "error", [DeviceFailure("the device is lost"), NonFiniteLogits("row 0 is NaN")]
)
def test_an_integrity_error_fails_every_request_clearly(error: IntegrityError) -> None:
    gate = Gate(3, error)
    engine = threaded_engine(fault=gate, options=EngineOptions(max_concurrency=2))
    members = [engine.start(prompt(3, row), request("long", tokens=200)) for row in range(2)]
    waiting = engine.start(prompt(4), request())
    assert gate.reached.wait(10)
    gate.open.set()
    for handle in members:
        with pytest.raises(type(error), match=str(error)):
            handle.wait(timeout=10)
    with pytest.raises(EngineUnavailable, match=type(error).__name__):
        waiting.wait(timeout=10)
    with pytest.raises(EngineUnavailable, match=f"poisoned: {error}"):
        engine.start(prompt(3), request())
    assert engine.state is EngineState.POISONED
    engine.close()
    assert worker_threads() == []
    assert engine.stats().outcomes["failed"] == 3
    assert engine.stats().requests_running == engine.stats().requests_waiting == 0
    assert engine.stats().requests_outstanding == 0


def test_an_unexpected_error_is_no_users_error() -> None:
    gate = Gate(1, ZeroDivisionError("division by zero"))
    gate.open.set()
    engine = threaded_engine(fault=gate)
    handle = engine.start(prompt(3), request("long", tokens=9))
    with pytest.raises(EngineUnavailable, match="ZeroDivisionError"):
        handle.wait(timeout=10)
    engine.close()


def test_a_matcher_that_refuses_licensed_tokens_is_an_integrity_error() -> None:
    frontend = ScriptedFrontend(refuse_after=2)
    engine = threaded_engine(frontend=frontend)
    handle = engine.start(prompt(3), request("long", tokens=9))
    with pytest.raises(IntegrityError, match="refuses a licensed token") as caught:
        for _ in handle:
            pass
    assert type(caught.value) is IntegrityError
    engine.close()


@pytest.mark.parametrize("name", ["open", "prefill", "decode", "commit", "release"])
def test_a_fault_anywhere_in_the_program_reaches_every_consumer(name: str) -> None:
    calls = iter(range(100))

    def fault(entered: str) -> None:
        if entered == name and next(calls) == 1:
            raise DeviceFailure(f"{name} failed")

    engine = threaded_engine(fault=fault, options=EngineOptions(max_concurrency=4))
    handles = []
    messages = []
    for row in range(6):
        # The worker may meet the fault before the last request is in.
        try:
            handles.append(engine.start(prompt(3, row), request("long", tokens=3 + row)))
        except NInferError as error:
            messages.append(str(error))
    for handle in handles:
        try:
            handle.wait(timeout=10)
        except NInferError as error:
            messages.append(str(error))
    assert messages
    assert all(f"{name} failed" in message for message in messages)
    engine.close()
    assert worker_threads() == []


def test_a_stepped_engine_refuses_to_be_stepped_when_it_has_a_thread() -> None:
    with threaded_engine() as engine, pytest.raises(RuntimeError, match="worker thread"):
        engine.run_cycle()
    stepped, _ = stepped_engine()
    assert isinstance(stepped, Engine)
    stepped.close()
    assert stepped.state is EngineState.CLOSED
