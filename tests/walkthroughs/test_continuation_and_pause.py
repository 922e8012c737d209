"""Specification 13.7: an answer goes on from its prefix, is paused inside, and still fits."""

from __future__ import annotations

import json

import pytest

from ninfer.contract import (
    Continuation,
    EngineOptions,
    GenerationResult,
    InvalidContinuation,
    OutputConstraint,
)
from support.engines import run_until_idle
from support.templates import chat, small_frontend
from support.walkthroughs import asking, engine_over, engine_saying

SCHEMA = OutputConstraint.json_schema(
    json.dumps(
        {
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
            "additionalProperties": False,
        }
    )
)
PREFIX = '{"name":'
PROMPT = chat(
    "Which city?",
    PREFIX,
    enable_thinking=False,
    continuation=Continuation.CONTINUE_FINAL_ASSISTANT,
)
ELDER = chat("Talk.", enable_thinking=False)


def require_suffix(result: GenerationResult) -> None:
    assert result.content == '"北京"}'
    assert json.loads(PREFIX + result.content) == {"name": "北京"}
    assert result.constraint is not None
    assert result.constraint.complete
    assert result.constraint.terminated


@pytest.mark.parametrize(("snapshot_bytes", "restores"), [(0, (0, 1)), (1 << 20, (1, 0))])
def test_only_the_suffix_is_published_and_replay_accepts_nothing_twice(
    snapshot_bytes: int, restores: tuple[int, int]
) -> None:
    prompt_tokens = len(small_frontend().prepare(PROMPT).token_ids)
    elder_tokens = len(small_frontend().prepare(ELDER).token_ids)
    calm = engine_saying('"北京"}', prompt_tokens)
    handle = calm.start(PROMPT, asking(SCHEMA))
    run_until_idle(calm)
    expected = handle.wait(timeout=0)
    require_suffix(expected)

    pressed = engine_saying(
        '"北京"}',
        prompt_tokens,
        EngineOptions(max_concurrency=2, host_snapshot_bytes=snapshot_bytes),
        kv_tokens=elder_tokens + prompt_tokens + 12,
        prefill_chunk_tokens=64,
    )
    elder = pressed.start(ELDER, asking(OutputConstraint.regex("[a-z]{300,}"), tokens=30))
    for _ in range(4):
        pressed.run_cycle()
    handle = pressed.start(PROMPT, asking(SCHEMA))
    run_until_idle(pressed)
    result = handle.wait(timeout=0)
    require_suffix(result)
    assert result.generated_token_ids == expected.generated_token_ids
    assert (result.scheduling.snapshot_restores, result.scheduling.replay_restores) == restores
    assert len(elder.wait(timeout=0).generated_token_ids) == 30


def test_a_prefix_outside_the_language_is_refused() -> None:
    prompt = chat(
        "Which city?",
        '{"nome":',
        enable_thinking=False,
        continuation=Continuation.CONTINUE_FINAL_ASSISTANT,
    )
    engine = engine_over(lambda history: [0.0] * small_frontend().vocabulary.token_domain)
    with pytest.raises(InvalidContinuation):
        engine.start(prompt, asking(SCHEMA))
    assert engine.is_idle
