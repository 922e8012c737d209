"""The law of schedules over a hybrid: what others left behind changes no answer and is reported."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from ninfer.contract import (
    EngineOptions,
    ExecutionOptions,
    OutputConstraint,
    PrefixPath,
    RequestOptions,
    SamplingOverrides,
    SpeculativeBackend,
    TextPrompt,
)
from ninfer.qwen_frontend.frontend import Frontend
from ninfer.runtime.loading import load_drafter
from support.hybrid_reuse import TinyHybrid
from support.schedules import (
    Asked,
    answer_alone,
    answers_of_arrivals,
    assert_same_answer,
    engine_over,
)

WORDS = ("red", "green", "blue", "greenish")
CONSTRAINTS = (None, OutputConstraint.choice(WORDS), OutputConstraint.regex("[0-9]{2,6}"))
SHARED = "The beginning that prompts share, which is longer than one page of tokens holds. "


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyHybrid:
    return TinyHybrid(tmp_path_factory.mktemp("tiny"))


def random_request(dice: random.Random) -> Asked:
    text = dice.choice(("", SHARED, SHARED + "And more of it. "))
    sampling = SamplingOverrides(temperature=0.0, presence_penalty=0.0)
    return TextPrompt(text + dice.choice(("one", "two", "three"))), RequestOptions(
        constraint=dice.choice(CONSTRAINTS),
        execution=ExecutionOptions(
            sampling=sampling,
            requested_output_tokens=dice.choice((1, 8, 30, 60)),
            allow_prefix_reuse=dice.random() < 0.8,
        ),
    )


@pytest.mark.parametrize("backend", [SpeculativeBackend.NONE, SpeculativeBackend.MTP])
@pytest.mark.parametrize("seed", range(3))
def test_answers_do_not_depend_on_what_others_left(
    seed: int, backend: SpeculativeBackend, tiny: TinyHybrid
) -> None:
    dice = random.Random(seed)
    drafter = None if backend is SpeculativeBackend.NONE else load_drafter(tiny.model, backend)
    alone = EngineOptions(
        max_context=192,
        speculative=backend,
        draft_tokens=backend.default_draft_tokens,
        state_checkpoint_bytes=0,
    )
    pressed = replace(
        alone,
        max_concurrency=dice.choice((2, 4)),
        kv_tokens=dice.choice((256, 384)),
        prefill_chunk=dice.choice((24, 1024)),
        host_snapshot_bytes=dice.choice((0, 1 << 20)),
        state_checkpoint_bytes=dice.choice((2, 6, 100)) * tiny.state_bytes,
    )
    frontend = Frontend(tiny.model.facts)
    asked = [random_request(dice) for _ in range(10)]
    results = answers_of_arrivals(engine_over(tiny.model, frontend, pressed, drafter), asked, dice)
    reused = 0
    for (text, request), result in zip(asked, results, strict=True):
        expected = answer_alone(engine_over(tiny.model, frontend, alone, drafter), text, request)
        assert_same_answer(result, expected)
        assert (expected.reused_prompt_tokens, expected.prefix_reuse_path) == (0, PrefixPath.ROOT)
        if not result.scheduling.preemptions:
            found = result.reused_prompt_tokens + result.computed_prefill_tokens
            assert found == result.prompt.prompt_tokens
        assert request.execution.allow_prefix_reuse or not result.reused_prompt_tokens
        is_reusing = result.prefix_reuse_path is PrefixPath.CHECKPOINT
        assert is_reusing == (result.reused_prompt_tokens > 0)
        reused += is_reusing
    assert reused
