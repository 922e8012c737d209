"""What a consumer of one generation sees, in order: start, progress, deltas, end."""

from __future__ import annotations

from dataclasses import dataclass

from ninfer.contract import GenerationResult, OutputDelta, PromptReport, SchedulingEvent


@dataclass(frozen=True, slots=True)
class GenerationStart:
    """The request was admitted; published once, before any delta, and not again after a pause."""

    engine_request_id: int
    prompt: PromptReport
    reused_prompt_tokens: int


@dataclass(frozen=True, slots=True)
class PromptProgress:
    """How much of the prompt is computed; reused tokens count as computed."""

    computed_tokens: int
    prompt_tokens: int


@dataclass(frozen=True, slots=True)
class TimingSnapshot:
    """How fast a request has been so far; stands before the text it holds for, if asked for.

    Units: seconds of ``prefill`` over ``computed_prefill_tokens``, of ``decode`` since the first of
    ``generated_tokens``.
    """

    reused_prompt_tokens: int
    computed_prefill_tokens: int
    generated_tokens: int
    prefill: float
    decode: float
    drafted_tokens: int = 0
    accepted_tokens: int = 0


@dataclass(frozen=True, slots=True)
class GenerationEnd:
    """The request ended with a result; errors are raised instead."""

    result: GenerationResult


StreamEvent = (
    GenerationStart
    | PromptProgress
    | TimingSnapshot
    | OutputDelta
    | SchedulingEvent
    | GenerationEnd
)
