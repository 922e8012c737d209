"""The law of scheduling: whatever happens around it, a finished request says what it says alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

import pytest

from ninfer.contract import (
    ConstraintDeadEnd,
    EngineOptions,
    FinishReason,
    NInferError,
    Overloaded,
    QueueTimeout,
    RequestOptions,
    SpeculativeBackend,
)
from ninfer.runtime.handle import GenerationHandle
from support.engines import Clock, prompt, request, run_until_idle, solo, stepped_engine

SCHEDULES = 500
BATCHES = 10


class Arrival(NamedTuple):
    token_ids: tuple[int, ...]
    options: RequestOptions
    cancel_cycle: int | None


def drafter(history: tuple[int, ...]) -> Sequence[int]:
    """Propose tokens that are right now and then."""
    return [(history[-1] * 5 + step) % 32 for step in range(3)]


def random_arrival(dice: random.Random, context_tokens: int) -> Arrival:
    shared = tuple(range(10, 10 + dice.choice((0, 4, 9))))
    own = tuple(dice.randrange(3, 31) for _ in range(dice.randrange(1, 20)))
    thinks = dice.random() < 0.2
    token_ids = (*shared, *own, *((31,) if thinks else ()))
    options = request(
        dice.choice((None, "free") if thinks else (None, None, "even", "long", "dead", "one")),
        tokens=dice.choice((0, 1, 5, 20, 60, None)),
        temperature=dice.choice((0.0, 0.7, 1.3)),
        seed=dice.randrange(1000),
        budget=dice.choice((None, 2, 5)) if thinks else None,
        presence_penalty=dice.choice((0.0, 0.5)),
    )
    return Arrival(token_ids, options, dice.choice((None, None, None, dice.randrange(40))))


def outcome(handle: GenerationHandle) -> tuple[str, tuple[int, ...]]:
    try:
        result = handle.wait(timeout=0)
    except NInferError as error:
        return type(error).__name__, ()
    return result.finish_reason.value, result.generated_token_ids


def alone(arrival: Arrival, shape: dict[str, int]) -> tuple[str, tuple[int, ...]]:
    try:
        result = solo(arrival.token_ids, arrival.options, **shape)
    except ConstraintDeadEnd:
        return "ConstraintDeadEnd", ()
    return result.finish_reason.value, result.generated_token_ids


def run_schedule(seed: int) -> None:
    dice = random.Random(seed)
    shape = {"context_tokens": dice.choice((48, 96))}
    shape["kv_tokens"] = dice.choice((shape["context_tokens"], 128, 400))
    draft_limit = dice.choice((0, 0, 3))
    clock = Clock()
    options = EngineOptions(
        max_concurrency=dice.choice((1, 2, 4, 8)),
        max_pending_requests=dice.choice((2, 16)),
        pending_timeout_ms=dice.choice((50, 100_000)),
        host_snapshot_bytes=dice.choice((0, 3_000, 1 << 20)),
        speculative=SpeculativeBackend.MTP if draft_limit else SpeculativeBackend.NONE,
    )
    # The drafts of a round need room too: a pool of one context would overflow with them.
    pool = dict(shape, kv_tokens=max(shape["kv_tokens"], shape["context_tokens"]))
    engine, program = stepped_engine(
        options=options,
        clock=clock,
        rows=options.max_concurrency,
        prefill_chunk_tokens=dice.choice((4, 16)),
        draft_limit=draft_limit,
        drafter=drafter if draft_limit else None,
        **pool,
    )
    handles: list[tuple[Arrival, GenerationHandle, int]] = []
    for cycle in range(dice.randrange(20, 60)):
        for _ in range(dice.choice((0, 0, 1, 3))):
            arrival = random_arrival(dice, shape["context_tokens"])
            try:
                handle = engine.start(prompt(*arrival.token_ids), arrival.options)
            except Overloaded:
                continue
            handles.append((arrival, handle, cycle))
        for arrival, handle, born in handles:
            if arrival.cancel_cycle is not None and cycle - born >= arrival.cancel_cycle:
                handle.cancel()
        engine.run_cycle()
        clock.seconds += 0.001
    run_until_idle(engine)
    judge(handles, shape)
    assert program.usage.rows_used == 0
    assert program.host_bytes == 0
    engine.close()


def judge(handles: list[tuple[Arrival, GenerationHandle, int]], shape: dict[str, int]) -> None:
    for arrival, handle, _ in handles:
        assert handle.is_settled
        seen, tokens = outcome(handle)
        if seen == QueueTimeout.__name__:
            continue
        expected, expected_tokens = alone(arrival, shape)
        if seen == FinishReason.CANCELLED.value:
            assert arrival.cancel_cycle is not None
            if expected != "ConstraintDeadEnd":
                assert tokens == expected_tokens[: len(tokens)]
            continue
        assert (seen, tokens) == (expected, expected_tokens)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_every_finished_request_equals_its_solo_run(batch: int) -> None:
    for seed in range(batch * SCHEDULES // BATCHES, (batch + 1) * SCHEDULES // BATCHES):
        run_schedule(seed)
