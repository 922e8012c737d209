"""Specification 13.2: two requests share one prompt's state; each keeps its own language."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from ninfer.contract import EngineOptions, OutputConstraint, PrefixPath, TextPrompt
from ninfer.qwen_frontend.frontend import Frontend
from ninfer.runtime.engine import Engine
from ninfer.runtime.loading import load_model
from ninfer.runtime.masks import lookahead_native
from ninfer.runtime.program import TorchProgram
from support.engines import run_until_idle
from support.tiny_models import write_checkpoint
from support.walkthroughs import asking

OBJECT = OutputConstraint.json_schema(
    json.dumps(
        {
            "type": "object",
            "properties": {"a": {"enum": [1, 2]}},
            "required": ["a"],
            "additionalProperties": False,
        }
    )
)
ENUM = OutputConstraint.json_schema('{"enum": ["red", "green"]}')


def test_a_stored_hidden_state_is_sampled_with_this_requests_mask(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    model = load_model(write_checkpoint(tmp_path), dtype=torch.float32)
    options = EngineOptions(max_concurrency=2, max_context=128)

    def engine() -> Engine:
        program = TorchProgram(model, options)
        return Engine(
            program, Frontend(model.facts), options, lookahead=lookahead_native, threaded=False
        )

    shared = engine()
    results = []
    for constraint in (OBJECT, ENUM, None):
        handle = shared.start(TextPrompt("one prompt for all"), asking(constraint, tokens=24))
        run_until_idle(shared)
        results.append(handle.wait(timeout=0))
    first, second, free = results

    assert first.reused_prompt_tokens == 0
    assert json.loads(first.content)["a"] in (1, 2)
    for later in (second, free):
        assert later.reused_prompt_tokens == later.prompt.prompt_tokens
        assert later.computed_prefill_tokens == 0
        assert later.prefix_reuse_path is PrefixPath.CHECKPOINT
    assert json.loads(second.content) in ("red", "green")

    for constraint, result in ((ENUM, second), (None, free)):
        alone = engine()
        handle = alone.start(TextPrompt("one prompt for all"), asking(constraint, tokens=24))
        run_until_idle(alone)
        assert handle.wait(timeout=0).generated_token_ids == result.generated_token_ids
