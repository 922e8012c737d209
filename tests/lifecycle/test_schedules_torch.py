"""The same law over the real program and the real sessions, with a tiny random model."""

from __future__ import annotations

import json
import random
import re

import pytest

from ninfer.contract import (
    EngineOptions,
    ExecutionOptions,
    FinishReason,
    GenerationResult,
    OutputConstraint,
    RequestOptions,
    SamplingOverrides,
    SpeculativeBackend,
    TextPrompt,
)
from ninfer.qwen_frontend.frontend import Frontend
from ninfer.runtime.loading import LoadedModel, load_drafter
from ninfer.runtime.models.drafters import Drafter
from support.engines import run_until_idle
from support.program_runs import tiny_model
from support.schedules import (
    answer_alone,
    answers_of_arrivals,
    assert_same_answer,
    engine_over,
)
from support.tiny_drafters import mtp_config, write_drafter

SCHEDULES = 6
WORDS = ("red", "green", "blue", "greenish")
CONSTRAINTS = (
    None,
    OutputConstraint.choice(WORDS),
    OutputConstraint.regex("[0-9]{2,6}"),
    OutputConstraint.json_schema('{"type":"array","items":{"type":"boolean"},"maxItems":4}'),
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def frontend(model: LoadedModel) -> Frontend:
    return Frontend(model.facts)


@pytest.fixture(scope="module")
def drafter(model: LoadedModel, tmp_path_factory: pytest.TempPathFactory) -> Drafter:
    folder = write_drafter(tmp_path_factory.mktemp("drafter") / "mtp", mtp_config())
    return load_drafter(model, SpeculativeBackend.MTP, folder)


def random_request(
    dice: random.Random, *, greedy: bool = False
) -> tuple[TextPrompt, RequestOptions]:
    text = "".join(dice.choice("abcdef ") for _ in range(dice.randrange(1, 40)))
    sampling = SamplingOverrides(
        temperature=0.0 if greedy else dice.choice((0.0, 0.8)),
        seed=dice.randrange(100),
        presence_penalty=0.0,
    )
    return TextPrompt(dice.choice(("", "shared beginning of a prompt, ")) + text), RequestOptions(
        constraint=dice.choice(CONSTRAINTS),
        execution=ExecutionOptions(
            sampling=sampling, requested_output_tokens=dice.choice((1, 8, 30, 60))
        ),
    )


def require_legal(options: RequestOptions, result: GenerationResult) -> None:
    """Check a finished answer with judges that share nothing with the product."""
    if result.finish_reason is not FinishReason.STOP_TOKEN or options.constraint is None:
        return
    kind = CONSTRAINTS.index(options.constraint)
    if kind == 1:
        assert result.content in WORDS
    elif kind == 2:
        assert re.fullmatch("[0-9]{2,6}", result.content)
    else:
        value = json.loads(result.content)
        assert len(value) <= 4
        assert all(type(item) is bool for item in value)


@pytest.mark.parametrize("seed", range(SCHEDULES))
def test_pressed_and_mixed_requests_equal_their_solo_runs(
    seed: int, model: LoadedModel, frontend: Frontend
) -> None:
    dice = random.Random(seed)
    options = EngineOptions(
        max_concurrency=dice.choice((2, 4)),
        max_context=128,
        kv_tokens=dice.choice((128, 192)),
        prefill_chunk=dice.choice((8, 64)),
        host_snapshot_bytes=dice.choice((0, 60_000, 1 << 20)),
    )
    engine = engine_over(model, frontend, options)
    asked = [random_request(dice) for _ in range(6)]
    results = answers_of_arrivals(engine, asked, dice)
    for (text, request), result in zip(asked, results, strict=True):
        require_legal(request, result)
        alone = engine_over(model, frontend, EngineOptions(max_context=128))
        assert_same_answer(result, answer_alone(alone, text, request))


@pytest.mark.parametrize("seed", range(SCHEDULES))
def test_drafts_and_pauses_never_change_a_greedy_answer(
    seed: int, model: LoadedModel, frontend: Frontend, drafter: Drafter
) -> None:
    dice = random.Random(seed)
    options = EngineOptions(
        max_concurrency=4,
        max_context=128,
        kv_tokens=192,
        prefill_chunk=dice.choice((8, 64)),
        host_snapshot_bytes=dice.choice((0, 1 << 20)),
        speculative=SpeculativeBackend.MTP,
        draft_tokens=dice.choice((1, 4)),
    )
    engine = engine_over(model, frontend, options, drafter)
    asked = [random_request(dice, greedy=True) for _ in range(6)]
    handles = []
    for text, request in asked:
        handles.append(engine.start(text, request))
        engine.run_cycle()
    run_until_idle(engine)
    results = [handle.wait(timeout=0) for handle in handles]
    assert sum(result.speculative.drafted_tokens for result in results) > 0
    alone = engine_over(model, frontend, EngineOptions(max_context=128))
    for (text, request), result in zip(asked, results, strict=True):
        require_legal(request, result)
        assert_same_answer(result, answer_alone(alone, text, request))


def test_the_schedules_meet_pauses_of_both_routes(model: LoadedModel, frontend: Frontend) -> None:
    for budget in (0, 1 << 30):
        options = EngineOptions(
            max_concurrency=2, max_context=96, kv_tokens=96, host_snapshot_bytes=budget
        )
        engine = engine_over(model, frontend, options)
        free = RequestOptions(
            execution=ExecutionOptions(
                sampling=SamplingOverrides(temperature=0.0, presence_penalty=0.0),
                requested_output_tokens=60,
            )
        )
        handles = [engine.start(TextPrompt(f"prompt {row}"), free) for row in range(2)]
        run_until_idle(engine)
        reports = [handle.wait(timeout=0).scheduling for handle in handles]
        assert [report.preemptions for report in reports] == [0, 1]
        assert reports[1].snapshot_restores == (1 if budget else 0)
        assert reports[1].replay_restores == (0 if budget else 1)
