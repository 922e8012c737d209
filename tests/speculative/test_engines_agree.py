"""Whole requests through engines with and without a drafter: the same text, and honest reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from ninfer.contract import (
    EngineOptions,
    ExecutionOptions,
    GenerationResult,
    RequestOptions,
    SpeculativeBackend,
)
from ninfer.qwen_frontend.frontend import Frontend
from ninfer.runtime.engine import Engine
from ninfer.runtime.loading import LoadedModel, load_drafter
from ninfer.runtime.masks import lookahead_native
from ninfer.runtime.models.drafters import Drafter
from ninfer.runtime.program import TorchProgram
from support.drafters import ScriptedDrafter
from support.engines import run_until_idle
from support.schedules import Asked, requests_in_turn
from support.tiny_drafters import block_config, mtp_config, write_drafter

MTP = SpeculativeBackend.MTP


@pytest.fixture(scope="module")
def drafters(model: LoadedModel, folder: Path) -> dict[str, Drafter]:
    configs = [mtp_config("qwen"), block_config("dflash"), block_config("dflash2")]
    return {
        config["drafter"]: load_drafter(
            model,
            SpeculativeBackend(config["drafter"]),
            write_drafter(folder / config["drafter"], config),
        )
        for config in configs
    }


@pytest.fixture(scope="module")
def mtp(drafters: dict[str, Drafter]) -> Drafter:
    return drafters["mtp"]


@pytest.fixture(scope="module")
def plain(model: LoadedModel, frontend: Frontend) -> dict[int, list[GenerationResult]]:
    return {rows: answers(model, frontend, requests(rows)) for rows in (1, 8)}


def requests(count: int, **sampling: float) -> list[Asked]:
    return requests_in_turn(count, output_tokens=14, **sampling)


def answers(
    model: LoadedModel,
    frontend: Frontend,
    asked: list[Asked],
    drafter: Drafter | None = None,
    **options: int,
) -> list[GenerationResult]:
    """Run requests together and return their results."""
    chosen = EngineOptions(
        max_concurrency=len(asked),
        max_context=options.pop("max_context", 128),
        speculative=SpeculativeBackend.NONE if drafter is None else drafter.backend,
        **options,  # type: ignore[arg-type]
    )
    program = TorchProgram(model, chosen, drafter)
    engine = Engine(program, frontend, chosen, lookahead=lookahead_native, threaded=False)
    handles = [engine.start(text, request) for text, request in asked]
    run_until_idle(engine)
    assert engine.stats().usage.rows_used == 0
    return [handle.wait(timeout=0) for handle in handles]


@pytest.mark.parametrize("rows", [1, 8])
@pytest.mark.parametrize("drafts", [1, 5, 15])
@pytest.mark.parametrize("name", ["mtp", "dflash", "dflash2"])
def test_no_drafter_changes_a_greedy_answer(
    model: LoadedModel,
    frontend: Frontend,
    drafters: dict[str, Drafter],
    plain: dict[int, list[GenerationResult]],
    name: str,
    drafts: int,
    rows: int,
) -> None:
    drafted = answers(model, frontend, requests(rows), drafters[name], draft_tokens=drafts)
    for expected, found in zip(plain[rows], drafted, strict=True):
        assert found.generated_token_ids == expected.generated_token_ids
        assert (found.content, found.finish_reason) == (expected.content, expected.finish_reason)
        assert (found.constraint is None) == (expected.constraint is None)
        report = found.speculative
        assert (report.backend, report.enabled, report.draft_window) == (name, True, drafts)


def test_penalties_count_drafts_that_stand_before(
    model: LoadedModel, frontend: Frontend, mtp: Drafter
) -> None:
    asked = requests(4, presence_penalty=1.5, frequency_penalty=0.7)
    plain = answers(model, frontend, asked)
    drafted = answers(model, frontend, asked, mtp, draft_tokens=5)
    assert [r.content for r in drafted] == [r.content for r in plain]


def test_a_drafter_that_is_right_saves_rounds_and_the_report_adds_up(
    model: LoadedModel, frontend: Frontend
) -> None:
    for asked in requests(4):
        (plain,) = answers(model, frontend, [asked])
        tokens, prompt_tokens = plain.generated_token_ids, plain.prompt.prompt_tokens

        def script(place: int, anchor: int) -> int:
            index = place - prompt_tokens  # noqa: B023
            return tokens[index] if index < len(tokens) else 0  # noqa: B023

        (found,) = answers(model, frontend, [asked], ScriptedDrafter(script), draft_tokens=5)
        assert found.generated_token_ids == tokens
        report = found.speculative
        assert report.rounds + report.fallback_steps == -(-(len(tokens) - 1) // 6)
        assert sum(report.accepted_per_position) == report.accepted_tokens <= report.drafted_tokens
        per_position = list(report.accepted_per_position)
        assert per_position == sorted(per_position, reverse=True)


@pytest.mark.parametrize("budget", [0, 1 << 30])
def test_rows_that_are_pushed_out_come_back_with_right_drafts(
    model: LoadedModel, frontend: Frontend, mtp: Drafter, budget: int
) -> None:
    asked = requests(2)
    long = [
        (text, RequestOptions(execution=ExecutionOptions(
            sampling=request.execution.sampling, requested_output_tokens=60)))
        for text, request in asked
    ]  # fmt: skip
    plain = answers(model, frontend, long)
    squeezed = {"max_context": 96, "kv_tokens": 128, "host_snapshot_bytes": budget}
    drafted = answers(model, frontend, long, mtp, draft_tokens=4, **squeezed)
    assert [r.generated_token_ids for r in drafted] == [r.generated_token_ids for r in plain]
    assert max(r.scheduling.preemptions for r in drafted) >= 1
