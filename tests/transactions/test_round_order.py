"""The order of one round: preview every row, commit once, confirm, then publish."""

from __future__ import annotations

import pytest

from ninfer.contract import IntegrityError, OutputDelta
from ninfer.runtime.handle import GenerationHandle
from support.engines import ScriptedFrontend, prompt, request, run_until_idle, stepped_engine


def note_deltas(handle: GenerationHandle, log: list[str]) -> None:
    """Log a publication when it happens, on the worker's own stack."""

    def listener() -> None:
        log.extend("publish" for event in handle.take() if isinstance(event, OutputDelta))

    handle.listen(listener)


def nine(history: tuple[int, ...]) -> list[float]:
    """Say token 9, always."""
    return [float(token == 9) for token in range(32)]


def two_rows(log: list[str], **program: object):
    frontend = ScriptedFrontend(log=log)
    engine, _ = stepped_engine(frontend=frontend, log=log, **program)
    handles = [
        engine.start(prompt(3, 4, 5 + row), request(rule, tokens=4))
        for row, rule in enumerate(("long", None))
    ]
    for handle in handles:
        note_deltas(handle, log)
    return engine, handles


def test_a_round_previews_commits_confirms_and_publishes_in_this_order() -> None:
    log: list[str] = []
    engine, _ = two_rows(log)
    engine.run_cycle()
    engine.run_cycle()
    log.clear()
    engine.run_cycle()
    assert log == [
        "decode",
        "preview",
        "preview",
        "commit",
        "confirm",
        "confirm",
        "publish",
        "publish",
    ]


def test_the_first_token_takes_the_same_way() -> None:
    log: list[str] = []
    engine, _ = two_rows(log)
    engine.run_cycle()
    assert log == ["open", "open", "prefill", "preview", "commit", "confirm", "publish"]


def test_forced_control_takes_the_same_way() -> None:
    log: list[str] = []
    frontend = ScriptedFrontend(log=log)
    engine, _ = stepped_engine(frontend=frontend, log=log, logits=nine)
    handle = engine.start(prompt(3, 31), request(budget=2, tokens=9))
    note_deltas(handle, log)
    run_until_idle(engine)
    start = log.index("append_control")
    assert log[start : start + 7] == [
        "append_control",
        "preview",
        "commit",
        "confirm",
        *["publish"] * 3,
    ]
    assert handle.is_settled


def test_a_failing_preview_drops_every_preview_and_aborts_the_batch() -> None:
    log: list[str] = []
    frontend = ScriptedFrontend(log=log, refuse_after=1)
    engine, _ = stepped_engine(frontend=frontend, log=log)
    handles = [
        engine.start(prompt(3, 4, 5 + row), request(rule, tokens=4))
        for row, rule in enumerate((None, "long"))
    ]
    engine.run_cycle()
    engine.run_cycle()
    log.clear()
    with pytest.raises(IntegrityError, match="refuses"):
        engine.run_cycle()
    assert log == ["decode", "preview", "refuse", "discard", "abort"]
    assert not any(handle.is_settled for handle in handles)


def test_a_failing_commit_confirms_and_publishes_nothing() -> None:
    log: list[str] = []

    def fault(name: str) -> None:
        if name == "commit" and log.count("decode") == 2:
            raise IntegrityError("the device is gone")

    engine, _ = two_rows(log, fault=fault)
    with pytest.raises(IntegrityError, match="device"):
        run_until_idle(engine)
    last = log[len(log) - 1 - log[::-1].index("decode") :]
    assert last == ["decode", "preview", "preview", "commit", "discard", "discard"]
