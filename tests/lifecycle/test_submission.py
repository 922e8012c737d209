"""What submit checks and reserves before anything is queued, and what it gives back."""

from __future__ import annotations

import threading

import pytest

from ninfer.contract import (
    ConstraintKind,
    ContextLengthExceeded,
    EngineOptions,
    EngineUnavailable,
    FinishReason,
    InvalidOption,
    InvalidPrompt,
    NInferError,
    Overloaded,
    QueueTimeout,
    RequestCancelled,
    RequestOptions,
    UnsatisfiableConstraint,
)
from ninfer.qwen_frontend.prepared import PreparedPrompt
from ninfer.runtime.prepared import Cancellation
from support.engines import (
    Clock,
    ScriptedFrontend,
    prompt,
    request,
    run_until_idle,
    stepped_engine,
    threaded_engine,
)
from support.scripted_session import ScriptedSession

TWO = EngineOptions(max_concurrency=1, max_pending_requests=1)
"""Two requests alive at once."""


def test_live_requests_over_the_limit_are_refused() -> None:
    engine, _ = stepped_engine(options=TWO)
    held = [engine.start(prompt(3), request()) for _ in range(2)]
    with pytest.raises(Overloaded, match="2 request slots"):
        engine.start(prompt(3), request())
    assert len(held) == engine.stats().requests_outstanding == 2
    assert engine.stats().outcomes["rejected"] == 1


def test_a_slot_is_free_once_the_request_ended_and_was_read() -> None:
    engine, _ = stepped_engine(options=TWO)
    held = [engine.start(prompt(3), request()) for _ in range(2)]
    run_until_idle(engine)
    with pytest.raises(Overloaded):
        engine.start(prompt(3), request())
    held[0].wait(timeout=0)
    held[0].wait(timeout=0)
    third = engine.start(prompt(3), request())
    with pytest.raises(Overloaded):
        engine.start(prompt(3), request())
    assert not third.is_settled


def test_a_dropped_handle_keeps_its_slot_until_the_worker_noticed() -> None:
    engine, _ = stepped_engine(options=TWO)
    held = [engine.start(prompt(3), request()) for _ in range(2)]
    held.pop()
    assert engine.stats().requests_outstanding == 2
    engine.run_cycle()
    assert engine.stats().requests_outstanding == 1


REFUSALS: list[tuple[str, tuple[int, ...], RequestOptions, type[NInferError]]] = [
    ("an empty prompt", (), request(), InvalidPrompt),
    ("a foreign token id", (3, 32), request(), InvalidPrompt),
    ("a negative token id", (3, -1), request(), InvalidPrompt),
    ("a prompt that fills the context", tuple([3] * 256), request(), ContextLengthExceeded),
    ("a negative length", (3,), request(tokens=-1), InvalidOption),
    ("a temperature out of range", (3,), request(temperature=3.0), InvalidOption),
    ("a language without a first token", (3,), request("empty"), UnsatisfiableConstraint),
]


@pytest.mark.parametrize(
    ("token_ids", "options", "error"),
    [row[1:] for row in REFUSALS],
    ids=[row[0] for row in REFUSALS],
)
def test_a_refused_request_gives_its_slot_back(
    token_ids: tuple[int, ...], options: RequestOptions, error: type[NInferError]
) -> None:
    engine, _ = stepped_engine(options=TWO)
    for _ in range(3):
        with pytest.raises(error):
            engine.start(prompt(*token_ids), options)
    assert engine.stats().requests_outstanding == 0
    assert engine.stats().outcomes["rejected"] == 3
    assert engine.is_idle


def test_an_unsatisfiable_start_names_the_kind_of_constraint() -> None:
    engine, _ = stepped_engine()
    with pytest.raises(UnsatisfiableConstraint) as caught:
        engine.start(prompt(3), request("empty"))
    assert caught.value.kind is ConstraintKind.GRAMMAR


def test_a_whole_context_may_be_answered_up_to_its_last_token() -> None:
    engine, _ = stepped_engine(context_tokens=32)
    handle = engine.start(prompt(*[3] * 31), request("long", tokens=None))
    run_until_idle(engine)
    result = handle.wait(timeout=0)
    assert len(result.generated_token_ids) == 1
    assert result.finish_reason is FinishReason.CONTEXT_CAPACITY


@pytest.mark.parametrize("tokens", [None, 1000])
def test_the_context_ends_a_longer_answer(tokens: int | None) -> None:
    engine, _ = stepped_engine(context_tokens=32)
    handle = engine.start(prompt(3, 4), request("long", tokens=tokens))
    run_until_idle(engine)
    result = handle.wait(timeout=0)
    assert (len(result.generated_token_ids), result.finish_reason) == (
        30,
        FinishReason.CONTEXT_CAPACITY,
    )


def test_the_output_limit_ends_a_longer_answer() -> None:
    engine, _ = stepped_engine()
    handle = engine.start(prompt(3, 4), request("long", tokens=5))
    run_until_idle(engine)
    result = handle.wait(timeout=0)
    assert (len(result.generated_token_ids), result.finish_reason) == (5, FinishReason.OUTPUT_LIMIT)


@pytest.mark.parametrize("rule", [None, "even"])
def test_a_request_for_no_output_processes_its_prompt_only(rule: str | None) -> None:
    engine, program = stepped_engine(prefill_chunk_tokens=4)
    handle = engine.start(prompt(*range(3, 12)), request(rule, tokens=0))
    run_until_idle(engine)
    result = handle.wait(timeout=0)
    assert (result.generated_token_ids, result.content) == ((), "")
    assert result.finish_reason is FinishReason.NONE
    assert result.computed_prefill_tokens == 9
    assert program.log[-2:] == ["abort", "release"]
    assert program.mask_calls == 0
    if rule is not None:
        assert result.constraint is not None
        assert not result.constraint.complete


class GatedFrontend(ScriptedFrontend):
    """Opens sessions only while its gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.entered = threading.Event()
        self.gate = threading.Event()

    def open_session(
        self, prepared: PreparedPrompt, options: RequestOptions, **limits: object
    ) -> ScriptedSession:
        if options.constraint is not None:
            self.entered.set()
            assert self.gate.wait(10)
        return super().open_session(prepared, options, **limits)


def test_a_slow_compilation_blocks_nobody_else() -> None:
    frontend = GatedFrontend()
    with threaded_engine(frontend=frontend) as engine:
        answers: list[str] = []
        slow = threading.Thread(
            target=lambda: answers.append(engine.generate(prompt(3), request("one")).content)
        )
        slow.start()
        assert frontend.entered.wait(10)
        assert engine.generate(prompt(3, 4), request(tokens=4)).generated_token_ids
        assert engine.stats().requests_outstanding == 1
        frontend.gate.set()
        slow.join(10)
        assert answers == ["<7>"]


class SlowFrontend(ScriptedFrontend):
    """Takes seconds of a scripted clock to open a session."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        super().__init__()
        self._clock = clock
        self._seconds = seconds
        self.during = lambda: None

    def open_session(
        self, prepared: PreparedPrompt, options: RequestOptions, **limits: object
    ) -> ScriptedSession:
        self._clock.seconds += self._seconds
        self.during()
        return super().open_session(prepared, options, **limits)


def test_the_deadline_is_checked_again_after_compiling() -> None:
    clock = Clock()
    engine, _ = stepped_engine(frontend=SlowFrontend(clock, 31.0), clock=clock)
    with pytest.raises(QueueTimeout, match="while the request was prepared"):
        engine.start(prompt(3), request())
    assert engine.stats().requests_outstanding == 0


def test_an_engine_that_stopped_while_compiling_takes_nothing() -> None:
    clock = Clock()
    frontend = SlowFrontend(clock, 0.1)
    engine, _ = stepped_engine(frontend=frontend, clock=clock)
    frontend.during = engine.close
    with pytest.raises(EngineUnavailable, match="closed"):
        engine.start(prompt(3), request())
    assert engine.stats().requests_outstanding == 0


def test_a_cancellation_while_compiling_ends_the_submission() -> None:
    clock = Clock()
    frontend = SlowFrontend(clock, 0.1)
    engine, _ = stepped_engine(frontend=frontend, clock=clock)
    cancellation = Cancellation()
    frontend.during = cancellation.cancel
    with pytest.raises(RequestCancelled):
        engine.start(prompt(3), request(), cancellation=cancellation)
    assert engine.stats().requests_outstanding == 0


def test_counting_tokens_opens_no_session() -> None:
    frontend = ScriptedFrontend()
    engine, _ = stepped_engine(frontend=frontend)
    assert engine.count_tokens(prompt(3, 4, 5)) == 3
    assert frontend.sessions == 0


def test_a_prepared_prompt_may_be_submitted_again() -> None:
    engine, _ = stepped_engine()
    prepared = engine.prepare(prompt(3, 4))
    handles = [engine.submit(prepared, request(rule)) for rule in ("one", "even", None)]
    run_until_idle(engine)
    assert [handle.wait(timeout=0).prompt.prompt_tokens for handle in handles] == [2, 2, 2]


def test_preparation_inside_submit_is_counted_once() -> None:
    clock = Clock()
    engine, _ = stepped_engine(frontend=SlowFrontend(clock, 3.0), clock=clock)
    handle = engine.start(prompt(3), request("one"))
    clock.seconds += 2.0
    run_until_idle(engine)
    result = handle.wait(timeout=0)
    assert result.timings.prepare == pytest.approx(3.0)
    assert result.engine_timing.queue_wait == pytest.approx(2.0)
    assert result.timings.first_token == pytest.approx(5.0)
    assert result.timings.total == pytest.approx(5.0)
