"""Specification 13.1: a grammar from text to published bytes."""

from __future__ import annotations

import pytest

from ninfer.contract import ConstraintBranch, FinishReason, OutputConstraint
from support.engines import run_until_idle
from support.templates import chat, small_frontend
from support.walkthroughs import asking, engine_saying

GRAMMAR = 'root ::= "status=" ("ok" | "error") "\\n"'
PROMPT = chat("Report the status.", enable_thinking=False)


@pytest.mark.parametrize("wish", ["status=ok\n", "status=error\n", "all is well", "status=ok\n\n"])
def test_every_byte_of_the_rule_is_published_and_then_the_answer_ends(wish: str) -> None:
    prompt_tokens = len(small_frontend().prepare(PROMPT).token_ids)
    engine = engine_saying(wish, prompt_tokens)
    handle = engine.start(PROMPT, asking(OutputConstraint.grammar(GRAMMAR)))
    run_until_idle(engine)
    result = handle.wait(timeout=0)

    assert result.content in ("status=ok\n", "status=error\n")
    if wish in ("status=ok\n", "status=error\n"):
        assert result.content == wish
    assert result.finish_reason is FinishReason.STOP_TOKEN
    report = result.constraint
    assert report is not None
    assert (report.branch, report.complete, report.terminated) == (
        ConstraintBranch.CONTENT,
        True,
        True,
    )
    assert report.mask_positions == len(result.generated_token_ids)
