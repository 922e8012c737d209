"""Specification 13.5: the canonical close, forced or natural, leads into the same content."""

from __future__ import annotations

import pytest

from ninfer.contract import FinishReason, GenerationResult, OutputConstraint
from support.engines import run_until_idle
from support.templates import chat, small_frontend
from support.walkthroughs import asking, engine_saying

SPACED = OutputConstraint.regex(" (yes|no)")
PROMPT = chat("Well?")


def answer(wish: str, budget: int | None) -> GenerationResult:
    prompt_tokens = len(small_frontend().prepare(PROMPT).token_ids)
    engine = engine_saying(wish, prompt_tokens)
    handle = engine.start(PROMPT, asking(SPACED, budget=budget))
    run_until_idle(engine)
    return handle.wait(timeout=0)


def test_a_natural_close_keeps_the_space_that_belongs_to_the_content() -> None:
    result = answer("Hm, let me see.\n</think>\n\n no", budget=None)
    assert result.output.reasoning == "Hm, let me see."
    assert result.content == " no"
    assert result.finish_reason is FinishReason.STOP_TOKEN
    assert result.thinking is not None
    assert not result.thinking.applied


@pytest.mark.parametrize("budget", [1, 5, 12])
def test_a_budget_injects_the_whole_control_text_and_content_follows(budget: int) -> None:
    result = answer("I could go on thinking about this for ever and ever", budget=budget)
    assert result.thinking is not None
    assert result.thinking.applied
    assert result.thinking.model_thinking_tokens == budget
    assert result.thinking.injected_tokens > 1
    assert result.engine_timing.control_units == 1
    assert result.content in (" yes", " no")
    assert result.finish_reason is FinishReason.STOP_TOKEN
    assert result.output.reasoning.endswith(
        "I have to give the solution based on the thinking directly now."
    )
    assert result.constraint is not None
    assert result.constraint.terminated
