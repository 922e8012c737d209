"""Engines over scripted programs, and the judges of what they did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ninfer.contract import (
    EngineOptions,
    ExecutionOptions,
    FinishReason,
    GenerationResult,
    InvalidPrompt,
    OutputConstraint,
    PromptInput,
    RequestOptions,
    SamplingOverrides,
    ThinkingOptions,
    TokenPrompt,
)
from ninfer.qwen_frontend.prepared import PreparedPrompt
from ninfer.runtime.engine import Engine
from support.scripted_program import Logits, ScriptedProgram, hashed_logits
from support.scripted_session import EOS, Rule, ScriptedSession

THINKING_START = 31
"""A prompt that ends with this token starts in reasoning."""


def any_word(limit: int = 6) -> Rule:
    """Return the language of 1 to ``limit`` even tokens."""

    def rule(prefix: tuple[int, ...]) -> set[int]:
        letters = set(range(4, 32, 2)) if len(prefix) < limit else set()
        return letters | ({EOS} if prefix else set())

    return rule


def dead_after(tokens: int) -> Rule:
    """Return a language that only has a next token for a while."""
    return lambda prefix: set(range(3, 32)) if len(prefix) < tokens else set()


RULES: dict[str, Rule] = {
    "even": any_word(),
    "long": lambda prefix: set(range(3, 32)),
    "free": lambda prefix: set(range(2, 32)),
    "dead": dead_after(3),
    "empty": dead_after(0),
    "one": lambda prefix: {7} if not prefix else {EOS},
}


@dataclass
class ScriptedFrontend:
    """Implements the engine's Frontend: token prompts, and constraints that name a rule."""

    rules: Mapping[str, Rule] = field(default_factory=lambda: RULES)
    log: list[str] = field(default_factory=list)
    refuse_after: int | None = None
    sessions: int = 0

    def prepare(self, prompt: PromptInput) -> PreparedPrompt:
        if not isinstance(prompt, TokenPrompt):
            raise InvalidPrompt("scripted frontends take token ids")
        thinks = bool(prompt.token_ids) and prompt.token_ids[-1] == THINKING_START
        return PreparedPrompt(prompt.token_ids, starts_in_reasoning=thinks)

    def open_session(
        self,
        prepared: PreparedPrompt,
        options: RequestOptions,
        *,
        output_limit: int,
        limit_reason: FinishReason = FinishReason.OUTPUT_LIMIT,
    ) -> ScriptedSession:
        self.sessions += 1
        constraint = options.constraint
        return ScriptedSession(
            output_limit=output_limit,
            limit_reason=limit_reason,
            rule=None if constraint is None else self.rules[constraint.source],
            thinks=prepared.starts_in_reasoning,
            budget=options.execution.thinking.budget_tokens,
            log=self.log,
            refuse_after=self.refuse_after if constraint is not None else None,
        )


def request(
    rule: str | None = None,
    *,
    tokens: int | None = 12,
    temperature: float = 0.0,
    seed: int = 0,
    budget: int | None = None,
    **sampling: Any,
) -> RequestOptions:
    """Return options for a scripted request."""
    sampling.setdefault("presence_penalty", 0.0)
    return RequestOptions(
        constraint=None if rule is None else OutputConstraint.grammar(rule),
        execution=ExecutionOptions(
            sampling=SamplingOverrides(temperature=temperature, seed=seed, **sampling),
            requested_output_tokens=tokens,
            thinking=ThinkingOptions(budget),
        ),
    )


def prompt(*token_ids: int) -> TokenPrompt:
    """Return a prompt of token ids."""
    return TokenPrompt(token_ids)


class Clock:
    """A clock that moves when told."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def stepped_engine(
    *,
    logits: Logits | None = None,
    frontend: ScriptedFrontend | None = None,
    options: EngineOptions | None = None,
    clock: Clock | None = None,
    **program: Any,
) -> tuple[Engine, ScriptedProgram]:
    """Return an engine without a thread over a fresh program."""
    options = options or EngineOptions(max_concurrency=8)
    scripted = ScriptedProgram(logits or hashed_logits(32), **program)
    engine = Engine(
        scripted,
        frontend or ScriptedFrontend(),
        options,
        threaded=False,
        **({} if clock is None else {"now": clock}),
    )
    return engine, scripted


def threaded_engine(
    *,
    logits: Logits | None = None,
    frontend: ScriptedFrontend | None = None,
    options: EngineOptions | None = None,
    **program: Any,
) -> Engine:
    """Return a running engine over a fresh program; close it."""
    return Engine(
        ScriptedProgram(logits or hashed_logits(32), **program),
        frontend or ScriptedFrontend(),
        options or EngineOptions(max_concurrency=8),
    )


def run_until_idle(engine: Engine, cycles: int = 5000) -> None:
    """Step an engine until nothing is left."""
    for _ in range(cycles):
        engine.run_cycle()
        if engine.is_idle:
            return
    raise AssertionError(f"still busy after {cycles} cycles")


def solo(token_ids: Sequence[int], options: RequestOptions, **program: Any) -> GenerationResult:
    """Return what a request answers when it has an engine for itself, without speculation."""
    engine, _ = stepped_engine(**program)
    handle = engine.start(prompt(*token_ids), options)
    run_until_idle(engine)
    result = handle.wait(timeout=0)
    engine.close()
    return result
