"""A dead end along drafts fails its row only if the verified path really reaches it."""

from __future__ import annotations

import pytest

from ninfer.contract import (
    CommitDecision,
    EngineOptions,
    RowDisposition,
    SpeculationCounts,
)
from ninfer.runtime.loading import LoadedModel
from ninfer.runtime.program import TorchProgram
from support.drafters import ScriptedDrafter
from support.language_masks import Language, LanguageMasks
from support.program_runs import open_row, prompt, solo, start, tiny_model

DRAFTS = 3
LENGTH = 8


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return tiny_model(tmp_path_factory.mktemp("model"))


class Case:
    """One prompt in three rows, whose drafts are right but for one place if ``wrong`` names it."""

    def __init__(self, model: LoadedModel, wrong: int | None = None) -> None:
        self.answer = solo(model, prompt(30, 1), LENGTH)
        drafted = list(self.answer)
        if wrong is not None:
            drafted[wrong] = (drafted[wrong] + 1) % 200
        drafter = ScriptedDrafter(lambda place, anchor: drafted[place - 30])
        options = EngineOptions(
            max_concurrency=3, max_context=64, speculative=drafter.backend, draft_tokens=DRAFTS
        )
        self.drafted = drafted
        self.owner = TorchProgram(model, options, drafter)
        self.rows = [open_row(self.owner, prompt(30, 1)) for _ in range(3)]
        self.firsts = [start(self.owner, row) for row in self.rows]

    def anything_but(self, *ends: tuple[int, ...]) -> Language:
        """Return a language in which nothing may follow some texts."""
        everything = range(256)
        return lambda text: () if text in ends else everything


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_a_dead_end_on_the_licensed_path_fails_its_row_alone(
    model: LoadedModel, depth: int
) -> None:
    case = Case(model)
    # After the first token and ``depth`` accepted drafts nothing may follow.
    end = tuple(case.answer[: 1 + depth])
    languages = [None, case.anything_but(end), case.anything_but()]
    masks = LanguageMasks(languages, case.firsts)
    batch = case.owner.decode(case.rows, [LENGTH] * 3, masks)
    assert [row.failed for row in batch.rows] == [False, True, False]
    assert batch.rows[1].tokens == ()
    for index in (0, 2):
        assert batch.rows[index].tokens == tuple(case.answer[1 : 2 + DRAFTS])
        assert batch.rows[index].speculation == SpeculationCounts(DRAFTS, DRAFTS)
    all_of = CommitDecision(1 + DRAFTS)
    found = case.owner.commit(batch, [all_of, CommitDecision(0, failed=True), all_of])
    assert found[1] is RowDisposition.FAILED_RELEASED
    rest = case.owner.decode([case.rows[0], case.rows[2]], [2, 2], None)
    assert [row.tokens for row in rest.rows] == [tuple(case.answer[5:7])] * 2


@pytest.mark.parametrize("wrong", [1, 2, 3])
def test_a_dead_end_behind_a_rejected_draft_is_never_met(model: LoadedModel, wrong: int) -> None:
    case = Case(model, wrong)
    end = tuple(case.drafted[: wrong + 1])
    masks = LanguageMasks([case.anything_but(end), None, None], case.firsts)
    batch = case.owner.decode(case.rows, [LENGTH] * 3, masks)
    expected = tuple(case.answer[1 : 1 + wrong])
    for row in batch.rows:
        assert not row.failed
        assert row.tokens == expected
        assert row.speculation == SpeculationCounts(DRAFTS, wrong - 1)
