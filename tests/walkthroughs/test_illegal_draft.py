"""Specification 13.3: a draft that the grammar forbids is rejected, never replaced or cut off."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ninfer.contract import (
    EngineOptions,
    ExecutionOptions,
    Lookahead,
    OutputConstraint,
    PositionState,
    RequestOptions,
    SamplingOverrides,
    TextPrompt,
    TokenMatcher,
)
from ninfer.qwen_frontend.frontend import Frontend
from ninfer.runtime.engine import Engine
from ninfer.runtime.masks import lookahead_native
from ninfer.runtime.program import TorchProgram
from support.drafters import ScriptedDrafter
from support.engines import run_until_idle
from support.program_runs import tiny_model
from support.tiny_models import byte_tokenizer

READY, UNREACHABLE = PositionState.READY, PositionState.UNREACHABLE
DRAFTS = 3


def token_ids(text: str) -> list[int]:
    return byte_tokenizer().encode(text).ids


@pytest.mark.parametrize("temperature", [0.0, 1.2])
@pytest.mark.parametrize("illegal_at", [0, 1, 2])
def test_a_choice_of_two_words_against_drafts_of_a_third(
    tmp_path: Path, temperature: float, illegal_at: int
) -> None:
    model = tiny_model(tmp_path)
    frontend = Frontend(model.facts)
    prompt = TextPrompt("state")
    words = {"ok": token_ids("ok"), "error": token_ids("error")}
    foreign = token_ids("z")[0]
    seen: list[tuple[list[int], Lookahead]] = []

    def watched(
        matchers: Sequence[TokenMatcher | None],
        drafts: Sequence[Sequence[int]],
        masks: memoryview,
        threads: int,
    ) -> Sequence[Lookahead | None]:
        reports = lookahead_native(matchers, drafts, masks, threads)
        seen.extend((list(d), r) for d, r in zip(drafts, reports, strict=True) if r)
        return reports

    asked = RequestOptions(
        constraint=OutputConstraint.choice(tuple(words)),
        execution=ExecutionOptions(
            SamplingOverrides(temperature=temperature, seed=4, presence_penalty=0.0), 12
        ),
    )
    prompt_tokens = frontend.prepare(prompt).token_ids

    def script(place: int, anchor: int) -> int:
        """Continue the word that the anchor began, except in one place of each round."""
        word = next((w for w in words.values() if anchor in w), words["ok"])
        index = place - len(prompt_tokens)
        right = word[index] if index < len(word) else min(frontend.vocabulary.eos_ids)
        return foreign if len(rounds) and (place - rounds[-1]) == 1 + illegal_at else right

    rounds: list[int] = []

    class Drafter(ScriptedDrafter):
        def propose(self, rows, pool):  # type: ignore[no-untyped-def]
            rounds.append(rows[0].context.end)
            return super().propose(rows, pool)

    drafter = Drafter(script)
    options = EngineOptions(max_context=128, speculative=drafter.backend, draft_tokens=DRAFTS)
    program = TorchProgram(model, options, drafter)
    engine = Engine(program, frontend, options, lookahead=watched, threaded=False)
    handle = engine.start(prompt, asked)
    run_until_idle(engine)
    result = handle.wait(timeout=0)

    assert result.content in words
    assert result.constraint is not None
    assert result.constraint.terminated
    refused = [(drafts, report) for drafts, report in seen if foreign in drafts]
    assert refused
    for drafts, report in refused:
        place = drafts.index(foreign)
        ended = [i for i, token in enumerate(drafts) if token in frontend.vocabulary.eos_ids]
        if ended and ended[0] < place:
            place = ended[0]
        states = [report.state(position) for position in range(len(drafts) + 1)]
        assert states == [READY] * (place + 1) + [UNREACHABLE] * (len(drafts) - place)
        assert report.dead_ends == 0
        assert report.filled == place + 1
    # What is verified is what was drafted: the forbidden token counts as drafted, not as accepted.
    report = result.speculative
    assert report.drafted_tokens == sum(len(drafts) for drafts, _ in seen)
    assert report.accepted_tokens < report.drafted_tokens
