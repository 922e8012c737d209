"""Many threads at once: answers stay what they are alone, and nothing deadlocks or leaks."""

from __future__ import annotations

import gc
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ninfer.contract import EngineOptions, NInferError, OutputDelta
from ninfer.runtime.engine import Engine
from ninfer.runtime.handle import GenerationHandle
from support.engines import prompt, request, solo, threaded_engine

CLIENTS = 8
REQUESTS = 12
OPTIONS = EngineOptions(max_concurrency=4, max_pending_requests=12, host_snapshot_bytes=2000)
POOL = {"kv_tokens": 96, "context_tokens": 64}


def run_clients(client) -> list[BaseException]:
    """Run a function on several threads and return what they raised."""
    failures: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            client(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return failures


def test_answers_under_load_equal_their_solo_runs() -> None:
    expected = {
        (row, rule): solo((3, row), request(rule, tokens=30, seed=row, temperature=0.9), **POOL)
        for row in range(4, 8)
        for rule in ("even", "long", None)
    }

    def client(number: int) -> None:
        dice = random.Random(number)
        for _ in range(REQUESTS):
            row, rule = dice.choice(list(expected))
            asked = request(rule, tokens=30, seed=row, temperature=0.9)
            handle = engine.start(prompt(3, row), asked)
            if dice.random() < 0.2:
                handle.cancel()
                handle.wait(timeout=30)
                continue
            result = handle.wait(timeout=30)
            alone = expected[row, rule]
            assert result.generated_token_ids == alone.generated_token_ids
            assert result.content == alone.content

    with threaded_engine(options=OPTIONS, **POOL) as engine:
        assert run_clients(client) == []
        stats = engine.stats()
    assert stats.requests_outstanding == 0
    assert sum(stats.outcomes.values()) == CLIENTS * REQUESTS


@contextmanager
def eager_collector() -> Iterator[None]:
    """Collect cycles at almost every allocation, on whatever thread allocates."""
    usual = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


class Owner:
    """Holds a handle in a reference cycle, so that only the collector lets go of it."""

    def __init__(self, handle: GenerationHandle) -> None:
        self.handle = handle
        self.myself = self


def test_handles_freed_by_the_collector_never_deadlock() -> None:
    def client(number: int) -> None:
        for _ in range(4):
            try:
                owner = Owner(engine.start(prompt(3, number), request("long", tokens=20)))
            except NInferError:
                continue
            while not isinstance(owner.handle.next(30), OutputDelta):
                pass
            del owner

    engine: Engine = threaded_engine(options=OPTIONS, context_tokens=64)
    with eager_collector():
        failures = run_clients(client)
    assert failures == []
    # A collection that another thread has in hand makes this one return at once.
    deadline = time.monotonic() + 20
    while engine.stats().requests_outstanding and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)
    engine.close()
    assert engine.stats().requests_outstanding == 0
