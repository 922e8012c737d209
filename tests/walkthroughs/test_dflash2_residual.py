"""Specification 13.4: a drawn draft that is forbidden leaves the residual, so a and b stay even.

The target holds a and b equal; the drafter draws a or the forbidden x, half and half. Cutting x
off and drawing a bonus would give a three quarters.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

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
from ninfer.runtime.loading import load_model
from ninfer.runtime.masks import lookahead_native
from ninfer.runtime.program import TorchProgram
from support.drafters import CoinDrafter
from support.engines import run_until_idle
from support.tiny_models import byte_tokenizer, write_checkpoint

REQUESTS = 240
ROWS = 8


def test_a_and_b_are_drawn_half_and_half(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    folder = write_checkpoint(tmp_path)
    frontend = Frontend(load_model(folder, dtype=torch.float32).facts)
    a, b, x = (byte_tokenizer().encode(letter).ids[0] for letter in "abx")
    weights = load_file(folder / "model.safetensors")
    weights["lm_head.weight"][b] = weights["lm_head.weight"][a]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    model = load_model(folder, dtype=torch.float32)

    drafter = CoinDrafter(sides=(a, x))
    options = EngineOptions(
        max_concurrency=ROWS,
        max_pending_requests=REQUESTS,
        max_context=64,
        speculative=drafter.backend,
        draft_tokens=1,
    )
    program = TorchProgram(model, options, drafter)
    engine = Engine(program, frontend, options, lookahead=lookahead_native, threaded=False)
    handles = [
        engine.start(
            TextPrompt("p"),
            RequestOptions(
                constraint=OutputConstraint.regex("a[ab]c"),
                execution=ExecutionOptions(
                    SamplingOverrides(temperature=1.0, seed=seed, presence_penalty=0.0), 8
                ),
            ),
        )
        for seed in range(REQUESTS)
    ]
    run_until_idle(engine)
    results = [handle.wait(timeout=0) for handle in handles]

    assert all(result.constraint.terminated for result in results if result.constraint)
    counts = Counter(result.content for result in results)
    assert set(counts) == {"aac", "abc"}
    spread = (REQUESTS / 4) ** 0.5
    assert abs(counts["aac"] - REQUESTS / 2) < 4 * spread
    # Both sides of the coin fell, and the forbidden one was really verified and rejected.
    assert {a, x} == set(drafter.drawn)
    accepted = sum(result.speculative.accepted_tokens for result in results)
    assert 0 < accepted < sum(result.speculative.drafted_tokens for result in results)
