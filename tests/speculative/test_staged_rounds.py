"""Rounds in two stages over rows of one shape draft and answer as rounds over ragged rows do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ninfer.contract import (
    EngineOptions,
    Lookahead,
    ResumeRoute,
    SamplingParameters,
    SpeculativeBackend,
)
from ninfer.runtime.loading import LoadedModel, load_drafter, load_model
from ninfer.runtime.program import RoundForm, TorchProgram
from support.program_runs import FAIL, commit_all, decode, open_row, prompt, start, tiny_model
from support.round_forms import FORMS, Form
from support.tiny_drafters import block_config, mtp_config, write_drafter

GREEDY = SamplingParameters(temperature=0.0, presence_penalty=0.4)
SAMPLED = SamplingParameters(temperature=0.9, top_p=0.95, seed=7)
CONFIGS = {
    "mtp": mtp_config("qwen"),
    "dflash": block_config("dflash"),
    "dflash2": block_config("dflash2"),
    "dflash-windowed": block_config("dflash", layers=3, windows=[70, 0, 3]),
    "dflash2-windowed": block_config("dflash2", windows=[20, 20]),
}
DRAFTERS = list(CONFIGS)


class NotingMasks:
    """Implements contract.MaskProvider: allows every byte but one, and notes what was drafted."""

    def __init__(self, constrained: Sequence[bool], never: int = 200) -> None:
        self.constrained = constrained
        self.never = never
        self.notes: list[list[tuple[int, ...]]] = []

    def is_constrained(self, row: int) -> bool:
        return self.constrained[row]

    def fill(
        self, drafts: Sequence[Sequence[int]], masks: memoryview
    ) -> Sequence[Lookahead | None]:
        self.notes.append([tuple(row) for row in drafts])
        words = torch.frombuffer(masks, dtype=torch.int32).view(masks.shape)
        found: list[Lookahead | None] = []
        for row, proposal in enumerate(drafts):
            places = len(proposal) + 1
            if self.constrained[row]:
                words[row, :places] = 0
                words[row, :places, : 256 // 32] = -1
                words[row, :places, self.never // 32] ^= 1 << self.never % 32
                found.append(Lookahead(places, places, 0, places))
            else:
                found.append(None)
        return found

    def uploaded(self, row: int, byte_count: int) -> None:
        assert self.constrained[row]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("model")
    tiny_model(made, "qwen3")
    for name, config in CONFIGS.items():
        write_drafter(made / name, config)
    return made


def speculating(folder: Path, name: str, device: str, form: RoundForm) -> TorchProgram:
    model: LoadedModel = load_model(folder, device=device, dtype=torch.float32)
    backend = SpeculativeBackend(CONFIGS[name]["drafter"])
    options = EngineOptions(
        max_concurrency=4, max_context=256, prefill_chunk=32, speculative=backend, draft_tokens=5
    )
    return TorchProgram(model, options, load_drafter(model, backend, folder / name), form)


def reference(folder: Path, name: str) -> TorchProgram:
    return speculating(folder, name, "cpu", RoundForm.RAGGED)


def answers(owner: TorchProgram, *, masks: bool) -> tuple[list[list[int]], list[object]]:
    """Answer four prompts with rows that come, go, pause and are forced; return drafts too."""
    rows, tokens = [], []
    for index in range(4):
        sampling = replace(SAMPLED, seed=index) if index % 2 else GREEDY
        rows.append(open_row(owner, prompt(20 + 50 * index, 10 + index), sampling))
        tokens.append(start(owner, rows[-1]))
    noting = NotingMasks([True, False, True, True])
    for count, remaining in ((4, 90), (2, 3), (4, 1), (3, 90), (4, 90), (4, 2), (4, 90)):
        provider = noting if masks else None
        batch = owner.decode(rows[:count], [remaining] * count, provider)
        for answer, added in zip(tokens, commit_all(owner, batch), strict=False):
            answer += added
        state = owner.pause(rows[0], ResumeRoute.SNAPSHOT)
        rows[0] = owner.resume(state)
        if remaining == 1:
            commit_all(owner, owner.append_control(rows[1], list(range(40, 52))))
            commit_all(owner, owner.append_control(rows[2], [7]))
    return tokens, list(noting.notes)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", DRAFTERS)
@pytest.mark.parametrize("masks", [False, True])
def test_drafts_and_answers_are_those_of_ragged_rounds(
    folder: Path, name: str, form: Form, masks: bool
) -> None:
    expected = answers(reference(folder, name), masks=masks)
    assert answers(speculating(folder, name, *form), masks=masks) == expected


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", DRAFTERS)
def test_a_row_fills_its_context_to_the_last_place(folder: Path, name: str, form: Form) -> None:
    found = []
    for owner in (reference(folder, name), speculating(folder, name, *form)):
        row, tokens = open_row(owner, prompt(230, 5)), []
        tokens += start(owner, row)
        while len(tokens) < 26:
            assert owner.can_advance([row]) == 1
            tokens += commit_all(owner, decode(owner, [row]))[0]
        found.append(tokens)
    assert found[0] == found[1]


class Interrupted(NotingMasks):
    """Fails in the middle of a fill."""

    def fill(
        self, drafts: Sequence[Sequence[int]], masks: memoryview
    ) -> Sequence[Lookahead | None]:
        super().fill(drafts, masks)
        raise InterruptedError("between two rows")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", DRAFTERS)
def test_a_lookahead_that_fails_leaves_everything_as_it_was(
    folder: Path, name: str, form: Form
) -> None:
    calm, shaken = (speculating(folder, name, *form) for _ in range(2))
    rows = [
        [open_row(owner, prompt(40 + i, i), SAMPLED) for i in range(3)] for owner in (calm, shaken)
    ]
    for owner, own in zip((calm, shaken), rows, strict=True):
        for row in own:
            start(owner, row)
    for _ in range(6):
        with pytest.raises(InterruptedError):
            shaken.decode(rows[1], [50] * 3, Interrupted([True, False, True]))
        shaken.abort(shaken.decode(rows[1], [50] * 3, NotingMasks([True] * 3)))
        expected = calm.decode(rows[0], [50] * 3, NotingMasks([True, False, True]))
        found = shaken.decode(rows[1], [50] * 3, NotingMasks([True, False, True]))
        assert [row.tokens for row in found.rows] == [row.tokens for row in expected.rows]
        commit_all(calm, expected)
        commit_all(shaken, found)


class NoWayOut(NotingMasks):
    """Allows the second row nothing after its first draft."""

    def fill(
        self, drafts: Sequence[Sequence[int]], masks: memoryview
    ) -> Sequence[Lookahead | None]:
        found = list(super().fill(drafts, masks))
        found[1] = Lookahead(len(drafts[1]) + 1, 1, 1, 1)
        words = torch.frombuffer(masks, dtype=torch.int32).view(masks.shape)
        words[1] = 0
        words[1, :, 0] = 1
        return found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", DRAFTERS)
def test_a_dead_row_fails_alone(folder: Path, name: str, form: Form) -> None:
    owner, other = speculating(folder, name, *form), reference(folder, name)
    runs = []
    for program in (owner, other):
        rows = [open_row(program, prompt(31 + i, 1 + i)) for i in range(3)]
        tokens = [start(program, row) for row in rows]
        if program is owner:
            batch = program.decode(rows, [50] * 3, NoWayOut([True, True, False]))
            assert [row.failed for row in batch.rows] == [False, True, False]
            decisions = [
                replace(FAIL, accepted_tokens=len(row.tokens), failed=row.failed)
                for row in batch.rows
            ]
            program.commit(batch, decisions)
            for index in (0, 2):
                tokens[index] += batch.rows[index].tokens
        while min(len(tokens[0]), len(tokens[2])) < 20:
            batch = program.decode([rows[0], rows[2]], [50] * 2, None)
            for index, added in zip((0, 2), commit_all(program, batch), strict=True):
                tokens[index] += added
        runs.append([tokens[0][:20], tokens[2][:20]])
    assert runs[0] == runs[1]
