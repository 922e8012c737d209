"""Specification 13.8: only a dead end on the path really taken fails a row, and only that row."""

from __future__ import annotations

import pytest

from ninfer.contract import (
    ConstraintDeadEnd,
    EngineOptions,
    FinishReason,
    OutputConstraint,
    SpeculativeBackend,
    TokenClass,
)
from support.engines import run_until_idle
from support.templates import chat, small_frontend
from support.walkthroughs import BACKGROUND, DOMAIN, asking, engine_over

PROMPT = chat("Go.", enable_thinking=False)
VOCABULARY = small_frontend().vocabulary
A, B = (VOCABULARY.pieces.index(letter) for letter in (b"a", b"b"))
assert VOCABULARY.classes[A] == TokenClass.TEXT

# After b the grammar wants one character of a token that excludes every token: nothing can follow.
EVERY = ", ".join(
    str(token) for token in range(DOMAIN) if VOCABULARY.classes[token] == TokenClass.TEXT
)
TRAP = OutputConstraint.grammar(f'root ::= "a" "a" "a" | "b" ExcludeToken({EVERY})')


def engine_preferring(token: int):
    def logits(history: tuple[int, ...]) -> list[float]:
        values = list(BACKGROUND(history))
        values[token] += 100.0
        return values

    return engine_over(
        logits,
        EngineOptions(max_concurrency=4, speculative=SpeculativeBackend.MTP, draft_tokens=3),
        draft_limit=3,
        drafter=lambda history: [B, A, A],
    )


def test_a_draft_into_a_dead_end_that_the_target_rejects_harms_nobody() -> None:
    engine = engine_preferring(A)
    held, free = engine.start(PROMPT, asking(TRAP)), engine.start(PROMPT, asking(tokens=9))
    run_until_idle(engine)
    result = held.wait(timeout=0)
    assert result.content == "aaa"
    assert result.finish_reason is FinishReason.STOP_TOKEN
    assert result.speculative.drafted_tokens > 0
    assert len(free.wait(timeout=0).generated_token_ids) == 9


def test_a_dead_end_on_the_path_fails_its_row_and_the_others_go_on() -> None:
    engine = engine_preferring(B)
    held, free = engine.start(PROMPT, asking(TRAP)), engine.start(PROMPT, asking(tokens=9))
    gone = engine.start(PROMPT, asking(OutputConstraint.regex("[a-z]{40,}"), tokens=40))
    for _ in range(6):
        engine.run_cycle()
    gone.cancel()
    run_until_idle(engine)
    with pytest.raises(ConstraintDeadEnd):
        held.wait(timeout=0)
    assert len(free.wait(timeout=0).generated_token_ids) == 9
    assert gone.wait(timeout=0).finish_reason is FinishReason.CANCELLED
    stats = engine.stats()
    assert engine.is_idle
    assert stats.usage.rows_used == 0
