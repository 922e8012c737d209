"""A warm-up prepares first requests, and none of them waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from ninfer.contract import LeftOut, WarmUpReport, WarmUpStop
from ninfer.gateway.server import warm_up_line
from ninfer.runtime import Engine
from support.engines import ScriptedFrontend, prompt, request
from support.scripted_program import ScriptedProgram, hashed_logits

REPORT = WarmUpReport(("json_object", "regex [0-9]+"), (), 0.25, 2_500_000)


class Work:
    """A warm-up that goes on until it is told to stop."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.may_end = threading.Event()

    def __call__(self, *, is_wanted: Callable[[], bool]) -> WarmUpReport:
        self.started.set()
        while is_wanted() and not self.may_end.is_set():
            time.sleep(0.001)
        stopped = () if self.may_end.is_set() else (LeftOut("the rest", WarmUpStop.STOPPED),)
        return WarmUpReport(REPORT.done, stopped, REPORT.seconds, REPORT.cache_bytes)


def engine_with(work: Work) -> Engine:
    return Engine(ScriptedProgram(hashed_logits(32)), ScriptedFrontend(), warm_up=work)


def settled(engine: Engine) -> WarmUpReport | None:
    deadline = time.monotonic() + 10
    while engine.is_warming and time.monotonic() < deadline:
        time.sleep(0.001)
    return engine.warm_up_report


def test_requests_are_answered_while_the_warm_up_is_still_at_work() -> None:
    work = Work()
    with engine_with(work) as engine:
        assert work.started.wait(10)
        assert engine.generate(prompt(3, 4), request("long", tokens=3)).generated_token_ids
        assert engine.is_warming
        assert engine.warm_up_report is None
        assert not [m for m in engine.metrics() if "warm_up" in m.name]


def test_the_report_is_kept_and_counted() -> None:
    work = Work()
    with engine_with(work) as engine:
        work.may_end.set()
        assert settled(engine) == REPORT
        found = {m.name: dict(m.samples) for m in engine.metrics() if "warm_up" in m.name}
    assert found == {
        "ninfer_warm_up_languages": {(("outcome", "done"),): 2, (("outcome", "left_out"),): 0},
        "ninfer_warm_up_seconds": {(): 0.25},
        "ninfer_warm_up_cache_bytes": {(): 2_500_000},
    }


def test_closing_ends_a_warm_up_and_keeps_what_it_did() -> None:
    engine = engine_with(Work())
    engine.close()
    assert not engine.is_warming
    report = engine.warm_up_report
    assert report is not None
    assert report.left_out == (LeftOut("the rest", WarmUpStop.STOPPED),)


def test_an_engine_that_nobody_holds_ends_its_warm_up() -> None:
    work = Work()
    before = set(threading.enumerate())
    engine = engine_with(work)
    assert work.started.wait(10)
    threads = set(threading.enumerate()) - before
    del engine
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)


def test_an_engine_without_a_warm_up_says_so() -> None:
    with Engine(ScriptedProgram(hashed_logits(32)), ScriptedFrontend()) as engine:
        assert not engine.is_warming
        assert engine.warm_up_report is None


@pytest.mark.parametrize(
    ("left_out", "line"),
    [
        ((), "warm-up: 2 languages in 0.2 s, 2.5 MB"),
        (
            (
                LeftOut("a", WarmUpStop.SECONDS),
                LeftOut("b", WarmUpStop.SECONDS),
                LeftOut("c", WarmUpStop.REFUSED),
            ),
            "warm-up: 2 languages in 0.2 s, 2.5 MB, 1 left out: refused, 2 left out: seconds",
        ),
    ],
)
def test_the_server_says_it_in_a_line(left_out: tuple[LeftOut, ...], line: str) -> None:
    report = WarmUpReport(REPORT.done, left_out, REPORT.seconds, REPORT.cache_bytes)
    assert warm_up_line(report) == line
