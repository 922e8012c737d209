"""Requests that arrive while an engine runs, and the same ones alone."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ninfer.contract import (
    EngineOptions,
    ExecutionOptions,
    GenerationResult,
    OutputConstraint,
    RequestOptions,
    SamplingOverrides,
    TextPrompt,
)
from ninfer.qwen_frontend.frontend import Frontend
from ninfer.runtime.engine import Engine
from ninfer.runtime.loading import LoadedModel
from ninfer.runtime.masks import lookahead_native
from ninfer.runtime.models.drafters import Drafter
from ninfer.runtime.program import TorchProgram
from support.engines import run_until_idle

Asked = tuple[TextPrompt, RequestOptions]
CONSTRAINTS = (
    None,
    OutputConstraint.choice(("red", "green", "blue", "greenish")),
    OutputConstraint.regex("[0-9]{2,19}"),
    OutputConstraint.json_schema('{"type":"array","items":{"type":"boolean"},"maxItems":4}'),
)


def requests_in_turn(
    count: int, *, output_tokens: int, filler: str = " and more", **sampling: float
) -> list[Asked]:
    """Return requests of growing lengths that take turns between the constraints."""
    chosen = SamplingOverrides(**{"temperature": 0.0, "presence_penalty": 0.0} | sampling)  # type: ignore[arg-type]
    return [
        (
            TextPrompt(f"prompt number {index}" + filler * index),
            RequestOptions(
                constraint=CONSTRAINTS[index % len(CONSTRAINTS)],
                execution=ExecutionOptions(
                    sampling=chosen, requested_output_tokens=output_tokens + index
                ),
            ),
        )
        for index in range(count)
    ]


def engine_over(
    model: LoadedModel,
    frontend: Frontend,
    options: EngineOptions,
    drafter: Drafter | None = None,
) -> Engine:
    """Return an engine over the real program whose cycles the caller runs."""
    program = TorchProgram(model, options, drafter)
    return Engine(program, frontend, options, lookahead=lookahead_native, threaded=False)


def answers_of_arrivals(
    engine: Engine, asked: Sequence[Asked], dice: random.Random
) -> list[GenerationResult]:
    """Start requests some cycles apart, run all to their end, and require that nothing is held."""
    handles = []
    for text, request in asked:
        handles.append(engine.start(text, request))
        for _ in range(dice.randrange(4)):
            engine.run_cycle()
    run_until_idle(engine)
    stats = engine.stats()
    assert (stats.usage.rows_used, stats.host_context_bytes) == (0, 0)
    return [handle.wait(timeout=0) for handle in handles]


def answer_alone(engine: Engine, text: TextPrompt, request: RequestOptions) -> GenerationResult:
    """Run one request in an idle engine."""
    handle = engine.start(text, request)
    run_until_idle(engine)
    return handle.wait(timeout=0)


def assert_same_answer(found: GenerationResult, expected: GenerationResult) -> None:
    """Check tokens, text and the reason to end."""
    assert found.generated_token_ids == expected.generated_token_ids
    assert (found.content, found.finish_reason) == (expected.content, expected.finish_reason)
