"""The frontend inside a running engine: mixed requests, wrong drafts, pauses, forced closes."""

import json
import random

import pytest

from ninfer.contract import (
    ConstraintBranch,
    EngineOptions,
    ExecutionOptions,
    FinishReason,
    OutputConstraint,
    RequestOptions,
    SamplingOverrides,
    SpeculativeBackend,
    TextPrompt,
    ThinkingOptions,
    ToolChoice,
)
from ninfer.runtime.engine import Engine
from support.engines import run_until_idle
from support.scripted_program import ScriptedProgram, hashed_logits
from support.templates import chat, small_frontend
from support.tool_sets import strict_tool

FRONTEND = small_frontend()
DOMAIN = FRONTEND.vocabulary.token_domain
CLOSE = FRONTEND.prepare(TextPrompt("\n</think>\n\n")).token_ids
TOOL = strict_tool(
    "t",
    {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 0, "maximum": 9},
            "b": {"type": "boolean"},
        },
        "required": ["n"],
        "additionalProperties": False,
    },
)


def eager(tokens: tuple[int, ...], spread: float = 6.0):
    """Return logits that look random but like given tokens, most of all in their order."""
    random_logits = hashed_logits(DOMAIN, spread=spread)

    def logits(history):
        row = list(random_logits(history))
        for token in tokens:
            row[token] += spread / 2
        for at, token in enumerate(tokens):
            if at and history[-at:] == tokens[:at]:
                row[token] += spread * 2
        return row

    return logits


def echo(history):
    """Propose what followed the last token before, or its repetition: mostly wrong."""
    last = history[-1]
    return [(last + step) % DOMAIN for step in range(4)]


def engine(*, rows=4, **program) -> Engine:
    drafts = program.get("draft_limit", 0)
    options = EngineOptions(
        max_concurrency=rows,
        max_pending_requests=64,
        max_context=512,
        speculative=SpeculativeBackend.MTP if drafts else SpeculativeBackend.NONE,
        draft_tokens=drafts,
    )
    scripted = ScriptedProgram(
        eager((*CLOSE, *FRONTEND.vocabulary.eos_ids)),
        token_domain=DOMAIN,
        rows=rows,
        context_tokens=512,
        **program,
    )
    return Engine(scripted, FRONTEND, options, threaded=False)


def options(seed: int, budget: int | None = None, **changes) -> RequestOptions:
    sampling = SamplingOverrides(temperature=1.0, seed=seed, presence_penalty=0.0)
    execution = ExecutionOptions(sampling, 300, thinking=ThinkingOptions(budget))
    return RequestOptions(execution=execution, **changes)


def requests(count: int):
    """Return prompts and options of every kind, in a fixed random order."""
    source = random.Random(3)
    kinds = [
        {"constraint": OutputConstraint.choice(["yes", " no", "上海"])},
        {"constraint": OutputConstraint.regex("[a-c]{2,5}")},
        {"constraint": OutputConstraint.json_schema('{"enum": [1, "x", null]}')},
        {"tool_choice": ToolChoice.named("t")},
        {},
    ]
    for seed in range(count):
        kind = source.choice(kinds)
        thinks = source.random() < 0.6
        tools = (TOOL,) if "tool_choice" in kind else ()
        prompt = chat(f"question {seed}", enable_thinking=thinks, tools=tools)
        yield prompt, options(seed, source.choice([None, 1, 7, 20]), **kind)


def judge(prompt, options, result) -> None:
    assert prompt.options.enable_thinking or not result.output.reasoning
    if options.constraint is None and not prompt.options.tools:
        assert result.constraint is None
        return
    assert (result.finish_reason is FinishReason.STOP_TOKEN) == result.constraint.terminated
    if result.thinking is not None and result.thinking.effective_budget is not None:
        # A character that the cap would cut is finished first: three tokens at most.
        assert result.thinking.model_thinking_tokens <= result.thinking.effective_budget + 3
        has_sentence = result.output.reasoning.endswith("directly now.")
        assert result.thinking.applied == (
            has_sentence or 1 <= result.thinking.injected_tokens <= 2
        )
    if not result.constraint.terminated:
        return
    if prompt.options.tools:
        (call,) = result.output.tool_calls
        assert 0 <= json.loads(call.arguments_json)["n"] <= 9
        assert (result.content, result.constraint.branch) == ("", ConstraintBranch.TOOLS)
    elif options.constraint.literals:
        assert result.content in options.constraint.literals
    elif options.constraint.source.startswith("[a-c]"):
        assert 2 <= len(result.content) <= 5
        assert set(result.content) <= set("abc")
    else:
        assert json.loads(result.content) in (1, "x", None)


@pytest.mark.parametrize(
    "program",
    [
        {},
        {"draft_limit": 4, "drafter": echo},
        {"kv_tokens": 512, "draft_limit": 4, "drafter": echo},
    ],
)
def test_every_answer_of_a_busy_engine_keeps_its_language(program):
    busy = engine(**program)
    asked = list(requests(40))
    handles = [busy.submit(busy.prepare(prompt), wanted) for prompt, wanted in asked]
    run_until_idle(busy, 20_000)
    results = [handle.wait() for handle in handles]
    for (prompt, wanted), result in zip(asked, results, strict=True):
        judge(prompt, wanted, result)
    ended = [r for r in results if r.constraint is not None and r.constraint.terminated]
    assert len(ended) > 15
    assert any(r.thinking is not None and r.thinking.applied for r in results)
    paused = sum(r.scheduling.preemptions for r in results)
    assert (paused > 0) == ("kv_tokens" in program)


def test_drafts_and_pauses_change_no_answer():
    def answers(**program):
        busy = engine(**program)
        handles = [busy.submit(busy.prepare(p), wanted) for p, wanted in requests(16)]
        run_until_idle(busy, 20_000)
        return [(r.output, r.finish_reason, r.thinking) for r in (h.wait() for h in handles)]

    plain = answers()
    assert answers(draft_limit=4, drafter=echo) == plain
    assert answers(kv_tokens=512) == plain
