"""Engines for the walk-throughs: real sessions over scripted logits, driven cycle by cycle."""

from __future__ import annotations

from typing import Any

from ninfer.contract import (
    EngineOptions,
    ExecutionOptions,
    OutputConstraint,
    RequestOptions,
    SamplingOverrides,
    ThinkingOptions,
    ToolChoice,
)
from ninfer.qwen_frontend.tokenizer import TextEncoder
from ninfer.runtime.engine import Engine
from ninfer.runtime.masks import lookahead_native
from support.scripted_program import Logits, ScriptedProgram, hashed_logits
from support.templates import small_frontend, small_tokenizer_json

DOMAIN = small_frontend().vocabulary.token_domain
BACKGROUND = hashed_logits(DOMAIN)
ENCODER = TextEncoder(small_tokenizer_json())


def engine_saying(
    text: str, prompt_tokens: int, options: EngineOptions | None = None, **program: Any
) -> Engine:
    """Return an unthreaded engine whose model wants to say ``text`` byte by byte, then EOS."""
    said = list(ENCODER.encode(text))
    end = small_frontend().facts.eos_ids[0]

    def logits(history: tuple[int, ...]) -> list[float]:
        values = list(BACKGROUND(history))
        done = list(history[prompt_tokens:])
        wanted = said[len(done)] if len(done) < len(said) else end
        if done == said[: len(done)]:
            values[wanted] += 100.0
        return values

    return engine_over(logits, options, **program)


def engine_over(logits: Logits, options: EngineOptions | None = None, **program: Any) -> Engine:
    """Return an unthreaded engine over logits."""
    shape = {"token_domain": DOMAIN, "context_tokens": 512} | program
    return Engine(
        ScriptedProgram(logits, **shape),
        small_frontend(),
        options or EngineOptions(max_concurrency=8),
        lookahead=lookahead_native,
        threaded=False,
    )


def asking(
    constraint: OutputConstraint | None = None,
    *,
    tool_choice: ToolChoice | None = None,
    tokens: int = 200,
    budget: int | None = None,
    seed: int = 0,
) -> RequestOptions:
    """Return greedy options without penalties."""
    return RequestOptions(
        constraint=constraint,
        tool_choice=tool_choice or ToolChoice(),
        execution=ExecutionOptions(
            sampling=SamplingOverrides(temperature=0.0, seed=seed, presence_penalty=0.0),
            requested_output_tokens=tokens,
            thinking=ThinkingOptions(budget),
        ),
    )
