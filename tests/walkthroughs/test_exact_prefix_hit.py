"""Specification 13.2: two requests share one prompt's state; each keeps its own language."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from ninfer.contract import (
    EngineOptions,
    GenerationResult,
    OutputConstraint,
    PrefixPath,
    SpeculativeBackend,
    TextPrompt,
)
from ninfer.qwen_frontend.frontend import Frontend
from ninfer.runtime.engine import Engine
from ninfer.runtime.loading import load_drafter, load_model
from ninfer.runtime.masks import lookahead_native
from ninfer.runtime.program import TorchProgram
from support.engines import run_until_idle
from support.hybrid_models import write_hybrid
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


KINDS = ["dense", "hybrid", "hybrid with MTP"]


class Served:
    """Engines over one tiny model."""

    def __init__(self, folder: Path, kind: str) -> None:
        torch.set_num_threads(1)
        write = write_checkpoint if kind == "dense" else write_hybrid
        self._model = load_model(write(folder), dtype=torch.float32)
        self._drafter, backend = None, SpeculativeBackend.NONE
        if kind == "hybrid with MTP":
            backend = SpeculativeBackend.MTP
            self._drafter = load_drafter(self._model, backend)
        self._options = EngineOptions(
            max_concurrency=2,
            max_context=256,
            speculative=backend,
            draft_tokens=backend.default_draft_tokens,
        )
        self._frontend = Frontend(self._model.facts)

    def engine(self) -> Engine:
        program = TorchProgram(self._model, self._options, self._drafter)
        return Engine(
            program, self._frontend, self._options, lookahead=lookahead_native, threaded=False
        )


def answer(
    engine: Engine, prompt: str, constraint: OutputConstraint | None, tokens: int = 24
) -> GenerationResult:
    handle = engine.start(TextPrompt(prompt), asking(constraint, tokens=tokens))
    run_until_idle(engine)
    return handle.wait(timeout=0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stored_hidden_state_is_sampled_with_this_requests_mask(
    tmp_path: Path, kind: str
) -> None:
    served = Served(tmp_path, kind)
    shared = served.engine()
    first, second, free = (
        answer(shared, "one prompt for all", constraint) for constraint in (OBJECT, ENUM, None)
    )

    assert first.reused_prompt_tokens == 0
    assert json.loads(first.content)["a"] in (1, 2)
    for later in (second, free):
        assert later.reused_prompt_tokens == later.prompt.prompt_tokens
        assert later.computed_prefill_tokens == 0
        assert later.prefix_reuse_path is PrefixPath.CHECKPOINT
    assert json.loads(second.content) in ("red", "green")

    for constraint, result in ((ENUM, second), (None, free)):
        alone = answer(served.engine(), "one prompt for all", constraint)
        assert alone.generated_token_ids == result.generated_token_ids


@pytest.mark.parametrize("kind", KINDS)
def test_a_conversation_computes_only_what_is_new(tmp_path: Path, kind: str) -> None:
    served = Served(tmp_path, kind)
    shared = served.engine()
    text = "The history of a conversation, which every turn of it repeats from its beginning. "
    known = 0
    for turn in range(4):
        result = answer(shared, text, OBJECT)
        asked = result.prompt.prompt_tokens
        reused = result.reused_prompt_tokens
        assert reused == known
        assert result.computed_prefill_tokens == asked - reused
        path = PrefixPath.CHECKPOINT if turn else PrefixPath.ROOT
        assert result.prefix_reuse_path is path
        alone = answer(served.engine(), text, OBJECT)
        assert alone.reused_prompt_tokens == 0
        assert alone.generated_token_ids == result.generated_token_ids
        # Everything but the end mark, which the text does not repeat.
        known = asked + len(result.generated_token_ids) - 1
        text += result.content + f" and then {turn} "
