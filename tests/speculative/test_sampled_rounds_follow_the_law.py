"""Sampled speculative rounds have the law of ordinary sampling, illegal drafts included.

The law of three tokens is multiplied out from the target's logits and the sampling oracle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ninfer.contract import (
    CommitDecision,
    EngineOptions,
    SamplingParameters,
    SpeculativeBackend,
)
from ninfer.runtime.loading import LoadedModel, load_drafter
from ninfer.runtime.models.drafters import Drafter
from ninfer.runtime.models.forward_batch import RowInput, forward_batch
from ninfer.runtime.models.kv_pool import SlotMap
from ninfer.runtime.program import TorchProgram
from support.drafters import ScriptedDrafter
from support.language_masks import LanguageMasks
from support.program_runs import open_row, prefill, prompt, tiny_model
from support.sampling_oracle import target
from support.statistics import assert_follows
from support.tiny_drafters import block_config, mtp_config, write_drafter

TEXT = prompt(6, 1)
DRAWS = 480
ROWS = 8
SAMPLING = SamplingParameters(temperature=1.6, top_p=0.97, presence_penalty=0.7)


def allowed_after(prefix: tuple[int, ...]) -> set[int]:
    """Return what may follow: three letters, and after the first of them only two."""
    return {10, 20, 30} if prefix[-1:] != (10,) else {20, 40}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def law(model: LoadedModel) -> dict[object, float]:
    """Return the probability of every answer of three tokens."""
    whole: dict[object, float] = {}

    def extend(prefix: tuple[int, ...], mass: float) -> None:
        if len(prefix) == 3:
            whole[prefix] = mass
            return
        pool = model.decoder.new_pool(1)
        row = RowInput([*TEXT, *prefix], 0, SlotMap([0]))
        hidden = model.decoder.forward(forward_batch([row], pool), pool)[-1:]
        logits = model.decoder.logits(hidden)[0, : model.facts.token_domain].tolist()
        found = target(logits, SAMPLING, allowed_after(prefix), dict(Counter(prefix)))
        for token, p in zip(found.tokens, found.probabilities, strict=True):
            extend((*prefix, token), mass * p)

    extend((), 1.0)
    assert len(whole) >= 10
    return whole


def half_legal(place: int, anchor: int) -> int:
    """Draft what is sometimes right, sometimes legal and sometimes neither."""
    return (20, 99, 10, 30, 40)[(place * 7 + anchor) % 5]


@pytest.mark.parametrize("name", ["mtp", "dflash", "dflash2", "scripted", "ahead"])
def test_answers_of_three_tokens(
    model: LoadedModel, law: dict[object, float], tmp_path: Path, name: str
) -> None:
    drafter: Drafter
    if name in ("scripted", "ahead"):
        drafter = ScriptedDrafter(half_legal, name == "ahead")
    else:
        config = mtp_config() if name == "mtp" else block_config(name)
        folder = write_drafter(tmp_path, config)
        drafter = load_drafter(model, SpeculativeBackend(name), folder)
    options = EngineOptions(
        max_concurrency=ROWS,
        max_context=64,
        speculative=drafter.backend,
        draft_tokens=2,
    )
    owner = TorchProgram(model, options, drafter)
    observed: Counter[object] = Counter()
    illegal = 0
    for begin in range(0, DRAWS, ROWS):
        answers, refused = answers_of(owner, range(begin, begin + ROWS))
        observed.update(answers)
        illegal += refused
    assert illegal > DRAWS // 10
    assert_follows(observed, law)


def answers_of(owner: TorchProgram, seeds: Sequence[int]) -> tuple[list[tuple[int, ...]], int]:
    """Return one answer of three tokens per seed, and how many drafts were illegal."""
    illegal = 0
    rows = [open_row(owner, TEXT, replace(SAMPLING, seed=s), reuse=True) for s in seeds]
    answers: list[tuple[int, ...]] = []
    for row in rows:
        batch = prefill(owner, row, LanguageMasks([allowed_after], [()]))
        owner.commit(batch, [CommitDecision(1)])
        answers.append(batch.rows[0].tokens)
    while any(len(answer) < 3 for answer in answers):
        live = [i for i, answer in enumerate(answers) if len(answer) < 3]
        masks = LanguageMasks([allowed_after] * len(live), [answers[i] for i in live])
        remaining = [3 - len(answers[i]) for i in live]
        batch = owner.decode([rows[i] for i in live], remaining, masks)
        illegal += masks.illegal
        owner.commit(batch, [CommitDecision(len(row.tokens)) for row in batch.rows])
        for i, row in zip(live, batch.rows, strict=True):
            answers[i] += row.tokens
    for row in rows:
        owner.release(row)
    return answers, illegal
