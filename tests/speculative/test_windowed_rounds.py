"""Drafters with windows decide how fast an answer comes, never which."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

from ninfer.contract import (
    EngineOptions,
    GenerationResult,
    SpeculativeBackend,
)
from ninfer.qwen_frontend.frontend import Frontend
from ninfer.runtime.loading import LoadedModel, load_drafter, load_model
from ninfer.runtime.models.drafters import Drafter
from ninfer.runtime.program import TorchProgram
from support.hybrid_models import write_hybrid
from support.program_runs import continue_rows, open_row, prompt, solo, start
from support.published_drafters import published_config, published_weights, write_published
from support.round_forms import FORMS, Form
from support.schedules import (
    answers_of_arrivals,
    assert_same_answer,
    engine_over,
    requests_in_turn,
)
from support.tiny_drafters import block_config, random_weights, write_drafter

CONFIGS = {
    "dflash": block_config("dflash", layers=3, windows=[24, 0, 5]),
    "dflash2": block_config("dflash2", windows=[9, 30]),
}


@pytest.fixture(scope="module", params=sorted(CONFIGS))
def drafter(request: pytest.FixtureRequest, model: LoadedModel, folder: Path) -> Drafter:
    place = write_drafter(folder / request.param, CONFIGS[request.param])
    return load_drafter(model, SpeculativeBackend(request.param), place)


def answers(
    model: LoadedModel, frontend: Frontend, drafter: Drafter | None, drafts: int, **sampling: float
) -> list[GenerationResult]:
    options = EngineOptions(
        max_concurrency=4,
        max_context=256,
        prefill_chunk=32,
        speculative=SpeculativeBackend.NONE if drafter is None else drafter.backend,
        draft_tokens=drafts,
    )
    engine = engine_over(model, frontend, options, drafter)
    asked = requests_in_turn(6, output_tokens=40, filler=" and much more of it", **sampling)
    return answers_of_arrivals(engine, asked, random.Random(drafts))


@pytest.fixture(scope="module")
def plain(model: LoadedModel, frontend: Frontend) -> list[GenerationResult]:
    return answers(model, frontend, None, 0)


@pytest.mark.parametrize("drafts", [1, 5, 15])
def test_greedy_answers_are_the_ordinary_ones(
    model: LoadedModel,
    frontend: Frontend,
    drafter: Drafter,
    plain: list[GenerationResult],
    drafts: int,
) -> None:
    found = answers(model, frontend, drafter, drafts)
    for result, expected in zip(found, plain, strict=True):
        assert_same_answer(result, expected)
        assert (result.constraint is None) == (expected.constraint is None)
    assert sum(result.speculative.drafted_tokens for result in found) > 50 * drafts


def test_penalties_change_nothing_about_it(
    model: LoadedModel, frontend: Frontend, drafter: Drafter
) -> None:
    punished = {"presence_penalty": 1.1, "frequency_penalty": 0.4}
    expected = answers(model, frontend, None, 0, **punished)
    for result, ordinary in zip(
        answers(model, frontend, drafter, 5, **punished), expected, strict=True
    ):
        assert_same_answer(result, ordinary)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_a_hybrid_answers_the_same_beside_a_published_drafter(
    tmp_path: Path, name: str, form: Form
) -> None:
    folder = write_hybrid(tmp_path / "hybrid")
    weights = published_weights(random_weights(CONFIGS[name], seed=1, vocab_rows=320))
    place = write_published(tmp_path / name, published_config(CONFIGS[name], 5), weights)
    model = load_model(folder, device=form[0], dtype=torch.float32)
    backend = SpeculativeBackend(name)
    options = EngineOptions(max_concurrency=2, max_context=256, speculative=backend, draft_tokens=7)
    owner = TorchProgram(model, options, load_drafter(model, backend, place), form[1])
    texts = [prompt(30, 1), prompt(90, 2)]
    rows = [open_row(owner, text) for text in texts]
    answers = [start(owner, row) for row in rows]
    for answer, added in zip(answers, continue_rows(owner, rows, 20), strict=True):
        answer += added
    on_cpu = load_model(folder, dtype=torch.float32)
    for text, answer in zip(texts, answers, strict=True):
        assert answer == solo(on_cpu, text, len(answer))
