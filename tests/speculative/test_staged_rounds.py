"""Every drafter on a CUDA device drafts and answers as it does on the CPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ninfer.contract import EngineOptions, ResumeRoute, SamplingParameters, SpeculativeBackend
from ninfer.runtime.loading import LoadedModel, load_drafter, load_model
from ninfer.runtime.program import TorchProgram
from support.drafters import RecordingDrafter
from support.program_runs import commit_all, open_row, prompt, start, tiny_model
from support.tiny_drafters import block_config, mtp_config, write_drafter

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
GREEDY = SamplingParameters(temperature=0.0, presence_penalty=0.4)
SAMPLED = SamplingParameters(temperature=0.9, top_p=0.95, seed=7)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[LoadedModel, LoadedModel]:
    folder: Path = tmp_path_factory.mktemp("model")
    on_cpu = tiny_model(folder, "qwen3")
    return on_cpu, load_model(folder, device="cuda", dtype=torch.float32)


def answers(
    model: LoadedModel, name: str, folder: Path
) -> tuple[list[list[int]], list[tuple[int, int, list[int]]]]:
    """Answer four prompts with rows that come, go and pause; return the drafts too."""
    backend = SpeculativeBackend(name)
    noted = RecordingDrafter(load_drafter(model, backend, folder))
    options = EngineOptions(
        max_concurrency=4, max_context=512, prefill_chunk=32, speculative=backend, draft_tokens=5
    )
    owner = TorchProgram(model, options, noted)  # type: ignore[arg-type]
    rows, tokens = [], []
    for index in range(4):
        sampling = replace(SAMPLED, seed=index) if index % 2 else GREEDY
        rows.append(open_row(owner, prompt(20 + 50 * index, 10 + index), sampling))
        tokens.append(start(owner, rows[-1]))
    for count, remaining in ((4, 90), (2, 3), (4, 1), (3, 90), (4, 90)):
        batch = owner.decode(rows[:count], [remaining] * count, None)
        for answer, added in zip(tokens, commit_all(owner, batch), strict=False):
            answer += added
        state = owner.pause(rows[0], ResumeRoute.SNAPSHOT)
        rows[0] = owner.resume(state)
    return tokens, noted.notes


@pytest.mark.parametrize("name", ["mtp", "dflash", "dflash2"])
def test_drafts_and_answers_are_those_of_the_cpu(
    models: tuple[LoadedModel, LoadedModel], tmp_path: Path, name: str
) -> None:
    config = mtp_config("qwen") if name == "mtp" else block_config(name)
    folder = write_drafter(tmp_path, config)
    on_cpu, on_gpu = (answers(model, name, folder) for model in models)
    assert on_gpu == on_cpu
