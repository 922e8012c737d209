"""Real sessions under the engine: thinking budgets, continuations and tools across pauses."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from ninfer.contract import (
    ChatPrompt,
    ConstraintBranch,
    Continuation,
    EngineOptions,
    ExecutionOptions,
    FinishReason,
    GenerationResult,
    OutputConstraint,
    RequestOptions,
    SamplingOverrides,
    SpeculativeBackend,
    ThinkingOptions,
    ToolChoice,
    ToolDeclaration,
)
from ninfer.runtime.engine import Engine
from ninfer.runtime.masks import lookahead_native
from support.engines import run_until_idle
from support.scripted_program import ScriptedProgram, hashed_logits
from support.templates import chat, small_frontend

SCHEDULES = 40
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 6}, "days": {"enum": [1, 2, 3]}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
LOOKUP = ToolDeclaration(
    "lookup",
    json.dumps(
        {"type": "function", "function": {"name": "lookup", "parameters": PARAMETERS}},
    ),
    json.dumps(PARAMETERS),
    strict=True,
)
PERSON = json.dumps(
    {
        "type": "object",
        "properties": {"name": {"type": "string", "pattern": "^[a-z]{12}$"}, "ok": {"const": True}},
        "required": ["name", "ok"],
        "additionalProperties": False,
    }
)
WORDS = ("yes", "no", "not at all")
DOMAIN = small_frontend().vocabulary.token_domain


def engine_of(options: EngineOptions | None = None, **program: Any) -> Engine:
    scripted = ScriptedProgram(
        hashed_logits(DOMAIN), token_domain=DOMAIN, **({"context_tokens": 512} | program)
    )
    return Engine(
        scripted,
        small_frontend(),
        options or EngineOptions(max_concurrency=8),
        lookahead=lookahead_native,
        threaded=False,
    )


def options(
    constraint: OutputConstraint | None = None,
    *,
    tokens: int = 200,
    budget: int | None = None,
    tool_choice: ToolChoice | None = None,
    seed: int = 0,
    temperature: float = 0.9,
) -> RequestOptions:
    return RequestOptions(
        constraint=constraint,
        tool_choice=tool_choice or ToolChoice(),
        execution=ExecutionOptions(
            sampling=SamplingOverrides(temperature=temperature, seed=seed, presence_penalty=0.0),
            requested_output_tokens=tokens,
            thinking=ThinkingOptions(budget),
        ),
    )


def alone(prompt: ChatPrompt, asked: RequestOptions) -> GenerationResult:
    engine = engine_of()
    handle = engine.start(prompt, asked)
    run_until_idle(engine)
    return handle.wait(timeout=0)


def thinking_request(seed: int) -> tuple[ChatPrompt, RequestOptions]:
    return chat("Well?"), options(OutputConstraint.choice(WORDS), budget=9, seed=seed)


def continuing_request(seed: int) -> tuple[ChatPrompt, RequestOptions]:
    prompt = chat(
        "Who?",
        '{"name":"ab',
        enable_thinking=False,
        continuation=Continuation.CONTINUE_FINAL_ASSISTANT,
    )
    return prompt, options(OutputConstraint.json_schema(PERSON), seed=seed)


def tool_request(seed: int) -> tuple[ChatPrompt, RequestOptions]:
    choice = ToolChoice.named("lookup")
    prompt = chat("Weather?", tools=(LOOKUP,), enable_thinking=False)
    return prompt, options(tool_choice=choice, seed=seed)


def free_request(seed: int) -> tuple[ChatPrompt, RequestOptions]:
    return chat("Talk.", enable_thinking=False), options(tokens=60, seed=seed)


def require_thinking(result: GenerationResult) -> None:
    assert result.finish_reason is FinishReason.STOP_TOKEN
    assert result.content in WORDS
    assert result.thinking is not None
    if result.thinking.applied:
        assert result.engine_timing.control_units == 1
        assert result.thinking.injected_tokens > 0
        assert result.output.reasoning_tokens >= 9


def require_continuation(result: GenerationResult) -> None:
    assert result.finish_reason is FinishReason.STOP_TOKEN
    value = json.loads('{"name":"ab' + result.content)
    assert list(value) == ["name", "ok"]
    assert len(value["name"]) == 12


def require_call(result: GenerationResult) -> None:
    assert result.finish_reason is FinishReason.STOP_TOKEN
    (call,) = result.output.tool_calls
    assert call.name == "lookup"
    arguments = json.loads(call.arguments_json)
    assert arguments["days"] in (1, 2, 3)
    assert len(arguments["city"]) <= 6
    assert result.constraint is not None
    assert result.constraint.branch is ConstraintBranch.TOOLS


def require_nothing(result: GenerationResult) -> None:
    assert result.constraint is None


KINDS = (
    (thinking_request, require_thinking),
    (continuing_request, require_continuation),
    (tool_request, require_call),
    (free_request, require_nothing),
)


def require_same(result: GenerationResult, expected: GenerationResult) -> None:
    assert result.generated_token_ids == expected.generated_token_ids
    assert (result.output, result.thinking) == (expected.output, expected.thinking)
    assert result.finish_reason is expected.finish_reason


@pytest.mark.parametrize(("build", "judge"), KINDS)
@pytest.mark.parametrize("snapshot_bytes", [0, 1 << 20])
def test_a_paused_session_goes_on_where_it_was(build, judge, snapshot_bytes: int) -> None:
    prompt, asked = build(seed=5)
    expected = alone(prompt, asked)
    judge(expected)
    elder_prompt = chat("Talk.", enable_thinking=False)
    answer_tokens = len(expected.generated_token_ids)
    elder_tokens = answer_tokens + 40
    elder_options = options(
        OutputConstraint.regex(f"[a-z]{{{elder_tokens},}}"), tokens=elder_tokens
    )
    engine = engine_of(
        EngineOptions(max_concurrency=2, host_snapshot_bytes=snapshot_bytes),
        # Room for both prompts and half of both answers.
        kv_tokens=len(small_frontend().prepare(elder_prompt).token_ids)
        + 30
        + expected.prompt.prompt_tokens
        + answer_tokens,
        prefill_chunk_tokens=64,
    )
    elder = engine.start(elder_prompt, elder_options)
    for _ in range(30):
        engine.run_cycle()
    handle = engine.start(prompt, asked)
    run_until_idle(engine)
    result = handle.wait(timeout=0)
    require_same(result, expected)
    assert result.scheduling.preemptions > 0
    require_same(elder.wait(timeout=0), alone(elder_prompt, elder_options))


def drafter(history: tuple[int, ...]) -> list[int]:
    """Propose the byte that follows and some that never fit."""
    return [(history[-1] + 1) % 256, 270, 33, 34]


@pytest.mark.parametrize("seed", range(SCHEDULES))
def test_mixed_sessions_equal_their_solo_runs(seed: int) -> None:
    dice = random.Random(seed)
    draft_limit = dice.choice((0, 4))
    engine = engine_of(
        EngineOptions(
            max_concurrency=dice.choice((2, 4, 8)),
            host_snapshot_bytes=dice.choice((0, 20_000, 1 << 20)),
            speculative=SpeculativeBackend.MTP if draft_limit else SpeculativeBackend.NONE,
        ),
        kv_tokens=dice.choice((420, 800)),
        context_tokens=412,
        draft_limit=draft_limit,
        drafter=drafter if draft_limit else None,
        prefill_chunk_tokens=dice.choice((16, 128)),
    )
    asked = []
    handles = []
    for number in range(6):
        build, judge = dice.choice(KINDS)
        prompt, request = build(seed=100 * seed + number)
        asked.append((prompt, request, judge))
        handles.append(engine.start(prompt, request))
        for _ in range(dice.randrange(6)):
            engine.run_cycle()
    run_until_idle(engine)
    assert engine.stats().usage.rows_used == 0
    for (prompt, request, judge), handle in zip(asked, handles, strict=True):
        result = handle.wait(timeout=0)
        judge(result)
        require_same(result, alone(prompt, request))
