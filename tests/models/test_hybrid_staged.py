"""A hybrid in staged rounds, eager or captured, answers as it does in ragged rounds on the CPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ninfer.contract import EngineOptions, ResumeRoute, SamplingParameters, SpeculativeBackend
from ninfer.runtime.loading import LoadedModel, load_drafter, load_model
from ninfer.runtime.models.drafters import Drafter
from ninfer.runtime.program import TorchProgram
from support.hybrid_models import write_hybrid
from support.program_runs import (
    GREEDY,
    commit_all,
    continue_rows,
    decode,
    open_row,
    prompt,
    solo,
    start,
)
from support.round_forms import FORMS, Form
from support.tiny_drafters import block_config, write_drafter

SAMPLED = SamplingParameters(temperature=0.9, top_p=0.95, presence_penalty=0.6, seed=7)
LENGTH = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return write_hybrid(tmp_path_factory.mktemp("hybrid"), seed=5)


@pytest.fixture(scope="module")
def on_cpu(folder: Path) -> LoadedModel:
    return load_model(folder, dtype=torch.float32)


def loaded(folder: Path, form: Form) -> LoadedModel:
    return load_model(folder, device=form[0], dtype=torch.float32)


def program(folder: Path, form: Form, **options: int) -> TorchProgram:
    chosen = {"max_concurrency": 4, "max_context": 256, "prefill_chunk": 32} | options
    engine = EngineOptions(**chosen)  # type: ignore[arg-type]
    return TorchProgram(loaded(folder, form), engine, form=form[1])


@pytest.mark.parametrize("form", FORMS)
def test_rows_answer_as_solo_runs_do(folder: Path, on_cpu: LoadedModel, form: Form) -> None:
    prompts = [prompt(20 + 50 * i, 10 + i) for i in range(4)]
    samplings = [replace(SAMPLED, seed=i) if i % 2 else GREEDY for i in range(4)]
    owner = program(folder, form, max_context=512)
    rows = [open_row(owner, p, s) for p, s in zip(prompts, samplings, strict=True)]
    tokens = {row: start(owner, row) for row in rows}
    for batch in (rows, rows[2:], [rows[3], rows[0]], rows):
        owner.abort(decode(owner, batch))
        for row, added in zip(batch, continue_rows(owner, batch, 20), strict=True):
            tokens[row] += added
    for row, token_ids, sampling in zip(rows, prompts, samplings, strict=True):
        count = len(tokens[row])
        assert tokens[row] == solo(on_cpu, token_ids, count, sampling, max_context=512)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("route", [ResumeRoute.SNAPSHOT, ResumeRoute.REPLAY])
def test_a_pause_loses_nothing(
    folder: Path, on_cpu: LoadedModel, form: Form, route: ResumeRoute
) -> None:
    owner = program(folder, form)
    row = open_row(owner, prompt(70, 3), SAMPLED)
    answer = start(owner, row) + continue_rows(owner, [row], 9)[0]
    row = owner.resume(owner.pause(row, route))
    while route is ResumeRoute.REPLAY and not owner.replay(row).complete:
        pass
    answer += continue_rows(owner, [row], 9)[0]
    assert answer == solo(on_cpu, prompt(70, 3), len(answer), SAMPLED)


def drafter_of(model: LoadedModel, name: str, folder: Path) -> Drafter:
    """Return the hybrid's own head, or a random block drafter."""
    backend = SpeculativeBackend(name)
    if backend is SpeculativeBackend.MTP:
        return load_drafter(model, backend)
    return load_drafter(model, backend, write_drafter(folder / name, block_config(name)))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("name", "drafts"), [("mtp", 1), ("mtp", 5), ("mtp", 15), ("dflash", 5), ("dflash2", 7)]
)
def test_no_draft_changes_an_answer(
    folder: Path, on_cpu: LoadedModel, form: Form, name: str, drafts: int, tmp_path: Path
) -> None:
    options = EngineOptions(
        max_concurrency=2,
        max_context=256,
        speculative=SpeculativeBackend(name),
        draft_tokens=drafts,
    )
    model = loaded(folder, form)
    owner = TorchProgram(model, options, drafter_of(model, name, tmp_path), form[1])
    texts = [prompt(30, 1), prompt(66, 2)]
    rows = [open_row(owner, text) for text in texts]
    answers = [start(owner, row) for row in rows]
    while min(map(len, answers)) < LENGTH:
        for answer, added in zip(answers, commit_all(owner, decode(owner, rows)), strict=True):
            answer += added
    for text, answer in zip(texts, answers, strict=True):
        assert answer[:LENGTH] == solo(on_cpu, text, LENGTH)


@pytest.mark.parametrize("form", FORMS)
def test_right_drafts_are_accepted_and_fold_as_one(
    folder: Path, on_cpu: LoadedModel, form: Form
) -> None:
    options = EngineOptions(
        max_concurrency=1, max_context=256, speculative=SpeculativeBackend.MTP, draft_tokens=5
    )
    model = loaded(folder, form)
    owner = TorchProgram(model, options, load_drafter(model, SpeculativeBackend.MTP), form[1])
    expected = solo(on_cpu, prompt(50, 9), LENGTH)
    row = open_row(owner, prompt(50, 9))
    answer = start(owner, row)
    while len(answer) < LENGTH - 6:
        # The head's own drafts give way to the answer with an error in every second round.
        ahead = expected[len(answer) : len(answer) + 5]
        wrong = 5 if len(answer) % 2 else 2
        ahead[wrong:] = [(token + 1) % 200 for token in ahead[wrong:]]
        owner._residents.get(row).draft.drafts = tuple(ahead)
        batch = decode(owner, [row])
        assert batch.rows[0].speculation.accepted == min(wrong, 5)
        answer += commit_all(owner, batch)[0]
    assert answer == expected[: len(answer)]
