"""A hybrid on a CUDA device: captured rounds answer as eager rounds on the CPU do."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from ninfer.contract import EngineOptions, ResumeRoute, SamplingParameters, SpeculativeBackend
from ninfer.runtime.loading import LoadedModel, load_drafter, load_model
from ninfer.runtime.program import TorchProgram
from support.hybrid_models import write_hybrid
from support.program_runs import (
    GREEDY,
    commit_all,
    continue_rows,
    decode,
    open_row,
    program,
    prompt,
    solo,
    start,
)

SAMPLED = SamplingParameters(temperature=0.9, top_p=0.95, presence_penalty=0.6, seed=7)
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[LoadedModel, LoadedModel]:
    torch.set_num_threads(1)
    folder = write_hybrid(tmp_path_factory.mktemp("hybrid"), seed=5)
    on_cpu = load_model(folder, dtype=torch.float32)
    return on_cpu, load_model(folder, device="cuda", dtype=torch.float32)


def test_rows_answer_as_solo_runs_on_the_cpu_do(models: tuple[LoadedModel, LoadedModel]) -> None:
    on_cpu, on_gpu = models
    prompts = [prompt(20 + 50 * i, 10 + i) for i in range(4)]
    samplings = [replace(SAMPLED, seed=i) if i % 2 else GREEDY for i in range(4)]
    owner = program(on_gpu, max_context=512)
    rows = [open_row(owner, p, s) for p, s in zip(prompts, samplings, strict=True)]
    tokens = {row: start(owner, row) for row in rows}
    for batch in (rows, rows[2:], [rows[3], rows[0]], rows):
        owner.abort(decode(owner, batch))
        for row, added in zip(batch, continue_rows(owner, batch, 20), strict=True):
            tokens[row] += added
    for row, token_ids, sampling in zip(rows, prompts, samplings, strict=True):
        count = len(tokens[row])
        assert tokens[row] == solo(on_cpu, token_ids, count, sampling, max_context=512)


@pytest.mark.parametrize("route", [ResumeRoute.SNAPSHOT, ResumeRoute.REPLAY])
def test_a_pause_loses_nothing(models: tuple[LoadedModel, LoadedModel], route: ResumeRoute) -> None:
    on_cpu, on_gpu = models
    owner = program(on_gpu)
    row = open_row(owner, prompt(70, 3), SAMPLED)
    answer = start(owner, row) + continue_rows(owner, [row], 9)[0]
    row = owner.resume(owner.pause(row, route))
    while route is ResumeRoute.REPLAY and not owner.replay(row).complete:
        pass
    answer += continue_rows(owner, [row], 9)[0]
    assert answer == solo(on_cpu, prompt(70, 3), len(answer), SAMPLED)


@pytest.mark.parametrize("drafts", [1, 5, 15])
def test_the_own_head_changes_no_answer(
    models: tuple[LoadedModel, LoadedModel], drafts: int
) -> None:
    on_cpu, on_gpu = models
    backend = SpeculativeBackend.MTP
    options = EngineOptions(
        max_concurrency=2, max_context=256, speculative=backend, draft_tokens=drafts
    )
    owner = TorchProgram(on_gpu, options, load_drafter(on_gpu, backend))
    texts = [prompt(30, 1), prompt(66, 2)]
    rows = [open_row(owner, text) for text in texts]
    answers = [start(owner, row) for row in rows]
    while min(map(len, answers)) < 40:
        for answer, added in zip(answers, commit_all(owner, decode(owner, rows)), strict=True):
            answer += added
    for text, answer in zip(texts, answers, strict=True):
        assert answer[:40] == solo(on_cpu, text, 40)
