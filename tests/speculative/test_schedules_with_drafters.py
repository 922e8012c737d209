"""Pressed, paused and mixed requests answer as they do alone, with every drafter."""

from __future__ import annotations

import random

import pytest

from ninfer.contract import (
    EngineOptions,
    ExecutionOptions,
    OutputConstraint,
    RequestOptions,
    SamplingOverrides,
    SpeculativeBackend,
    TextPrompt,
)
from ninfer.qwen_frontend.frontend import Frontend
from ninfer.runtime.engine import Engine
from ninfer.runtime.loading import LoadedModel, load_drafter
from ninfer.runtime.models.drafters import Drafter
from support.program_runs import tiny_model
from support.schedules import (
    answer_alone,
    answers_of_arrivals,
    assert_same_answer,
    engine_over,
)
from support.tiny_drafters import block_config, mtp_config, write_drafter

CONFIGS = {
    "mtp": mtp_config("qwen"),
    "dflash": block_config("dflash"),
    "dflash2": block_config("dflash2"),
}
CONSTRAINTS = (
    None,
    OutputConstraint.choice(("red", "green", "blue", "greenish")),
    OutputConstraint.regex("[ab]{2,30}"),
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def frontend(model: LoadedModel) -> Frontend:
    return Frontend(model.facts)


@pytest.fixture(params=sorted(CONFIGS))
def drafter(
    request: pytest.FixtureRequest, model: LoadedModel, tmp_path_factory: pytest.TempPathFactory
) -> Drafter:
    folder = write_drafter(tmp_path_factory.mktemp("drafter"), CONFIGS[request.param])
    return load_drafter(model, SpeculativeBackend(request.param), folder)


def random_request(dice: random.Random) -> tuple[TextPrompt, RequestOptions]:
    text = "".join(dice.choice("abcdef ") for _ in range(dice.randrange(1, 40)))
    sampling = SamplingOverrides(
        temperature=dice.choice((0.0, 1.1)),
        seed=dice.randrange(100),
        presence_penalty=dice.choice((0.0, 0.5)),
    )
    return TextPrompt(dice.choice(("", "shared beginning of a prompt, ")) + text), RequestOptions(
        constraint=dice.choice(CONSTRAINTS),
        execution=ExecutionOptions(
            sampling=sampling, requested_output_tokens=dice.choice((1, 2, 8, 30, 50))
        ),
    )


@pytest.mark.parametrize("seed", range(4))
def test_answers_do_not_depend_on_the_neighbours(
    seed: int, model: LoadedModel, frontend: Frontend, drafter: Drafter
) -> None:
    dice = random.Random(seed)
    drafts = dice.choice((1, 3, 6))

    def engine(**options: int) -> Engine:
        chosen = EngineOptions(
            max_context=128,
            speculative=drafter.backend,
            draft_tokens=drafts,
            **options,  # type: ignore[arg-type]
        )
        return engine_over(model, frontend, chosen, drafter)

    pressed = engine(
        max_concurrency=dice.choice((2, 4)),
        kv_tokens=dice.choice((128, 192)),
        prefill_chunk=dice.choice((8, 64)),
        host_snapshot_bytes=dice.choice((0, 60_000, 1 << 20)),
    )
    asked = [random_request(dice) for _ in range(6)]
    results = answers_of_arrivals(pressed, asked, dice)
    for (text, request), result in zip(asked, results, strict=True):
        expected = answer_alone(engine(), text, request)
        assert_same_answer(result, expected)
        assert result.speculative.accepted_tokens == expected.speculative.accepted_tokens
