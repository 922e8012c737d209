"""The program on a CUDA device: captured rounds answer as eager rounds on the CPU do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ninfer.contract import ResumeRoute, SamplingParameters
from ninfer.runtime.loading import LoadedModel, load_model
from ninfer.runtime.program.unit_set import context_profiles
from support.program_runs import (
    FAIL,
    GO_ON,
    GREEDY,
    RowSets,
    commit_all,
    continue_rows,
    decode,
    open_row,
    program,
    prompt,
    solo,
    start,
    tiny_model,
)

SAMPLED = SamplingParameters(temperature=0.9, top_p=0.95, presence_penalty=0.6, seed=7)
on_cuda = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


class DeviceSets(RowSets):
    """Row sets that count uploads instead of refusing them."""

    def __init__(self, *rows: set[int] | None) -> None:
        super().__init__(*rows)
        self.bytes: dict[int, int] = {}

    def uploaded(self, row: int, byte_count: int) -> None:
        self.bytes[row] = self.bytes.get(row, 0) + byte_count


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[LoadedModel, LoadedModel]:
    folder: Path = tmp_path_factory.mktemp("model")
    on_cpu = tiny_model(folder, "qwen3")
    return on_cpu, load_model(folder, device="cuda", dtype=torch.float32)


class TestOnCuda:
    pytestmark = on_cuda

    def test_rows_answer_as_solo_runs_on_the_cpu_do(
        self, models: tuple[LoadedModel, LoadedModel]
    ) -> None:
        on_cpu, on_gpu = models
        prompts = [prompt(20 + 50 * i, 10 + i) for i in range(4)]
        samplings = [replace(SAMPLED, seed=i) if i % 2 else GREEDY for i in range(4)]
        owner = program(on_gpu, max_context=512)
        rows = [open_row(owner, p, s) for p, s in zip(prompts, samplings, strict=True)]
        tokens = {row: start(owner, row) for row in rows}
        for batch in (rows, rows[2:], [rows[3], rows[0]], rows):
            for row, added in zip(batch, continue_rows(owner, batch, 40), strict=True):
                tokens[row] += added
        for row, token_ids, sampling in zip(rows, prompts, samplings, strict=True):
            count = len(tokens[row])
            assert tokens[row] == solo(on_cpu, token_ids, count, sampling, max_context=512)

    def test_masks_are_uploaded_for_constrained_rows_only(
        self, models: tuple[LoadedModel, LoadedModel]
    ) -> None:
        on_cpu, on_gpu = models
        owner = program(on_gpu)
        rows = [open_row(owner, prompt(30, 60 + i)) for i in range(3)]
        firsts = [start(owner, row) for row in rows]
        masks = DeviceSets(None, {5, 9}, set())
        batch = decode(owner, rows, masks)
        assert masks.bytes == dict.fromkeys((1, 2), 4 * -(-owner.shape.token_domain // 32))
        assert [row.failed for row in batch.rows] == [False, False, True]
        owner.commit(batch, [GO_ON, GO_ON, FAIL])
        assert batch.rows[1].tokens[0] in {5, 9}
        rest = continue_rows(owner, [rows[0]], 3)[0]
        whole = firsts[0] + list(batch.rows[0].tokens) + rest
        assert whole == solo(on_cpu, prompt(30, 60), 5)

    @pytest.mark.parametrize("route", [ResumeRoute.SNAPSHOT, ResumeRoute.REPLAY])
    def test_a_paused_row_comes_back(
        self, models: tuple[LoadedModel, LoadedModel], route: ResumeRoute
    ) -> None:
        on_cpu, on_gpu = models
        owner = program(on_gpu)
        row = open_row(owner, prompt(70, 1), SAMPLED)
        answer = start(owner, row) + continue_rows(owner, [row], 9)[0]
        state = owner.pause(row, route)
        row = owner.resume(state)
        while not owner.replay(row).complete:
            pass
        answer += continue_rows(owner, [row], 9)[0]
        assert answer == solo(on_cpu, prompt(70, 1), 19, SAMPLED)

    def test_an_aborted_round_happens_again_exactly(
        self, models: tuple[LoadedModel, LoadedModel]
    ) -> None:
        owner = program(models[1])
        row = open_row(owner, prompt(40, 2), SAMPLED)
        start(owner, row)
        dropped = decode(owner, [row])
        owner.abort(dropped)
        repeated = decode(owner, [row])
        assert repeated.rows == dropped.rows
        commit_all(owner, repeated)


def test_context_profiles_double_up_to_a_whole_context() -> None:
    assert context_profiles(33, reads_in_place=False) == (4, 8, 16, 32, 33)
    assert context_profiles(3, reads_in_place=False) == (3,)
    assert context_profiles(4096, reads_in_place=True) == (4096,)
