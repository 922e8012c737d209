"""What one round may do to one row, and that the other rows never notice."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ninfer.contract import (
    ConstraintDeadEnd,
    EngineOptions,
    FinishReason,
    MaskProvider,
    OutputDelta,
    PendingBatch,
    RowMismatch,
    SequenceId,
)
from ninfer.runtime.engine import Engine
from support.engines import ScriptedFrontend, prompt, request, run_until_idle, solo, stepped_engine
from support.scripted_program import ScriptedProgram, hashed_logits


def ahead(history: tuple[int, ...]) -> list[int]:
    """Draft what an unconstrained greedy target would say."""
    drafts: list[int] = []
    logits = hashed_logits(32)
    for _ in range(4):
        scores = logits((*history, *drafts))
        drafts.append(max(range(32), key=lambda token: (scores[token], -token)))
    return drafts


@pytest.mark.parametrize("draft_limit", [0, 4])
def test_a_dead_end_fails_its_row_alone_and_keeps_earlier_text(draft_limit: int) -> None:
    engine, _ = stepped_engine(draft_limit=draft_limit, drafter=ahead if draft_limit else None)
    doomed = engine.start(prompt(3, 9), request("dead"))
    others = [engine.start(prompt(3, 4 + row), request("even", seed=row)) for row in range(3)]
    run_until_idle(engine)
    published = [event for event in doomed.take() if isinstance(event, OutputDelta)]
    # A round that walks into the dead end commits none of its tokens.
    assert len(published) == (2 if draft_limit else 3)
    with pytest.raises(ConstraintDeadEnd, match=f"after {len(published)} generated tokens"):
        doomed.wait(timeout=0)
    for row, handle in enumerate(others):
        expected = solo((3, 4 + row), request("even", seed=row))
        assert handle.wait(timeout=0).generated_token_ids == expected.generated_token_ids
    stats = engine.stats()
    assert (stats.dead_ends, stats.outcomes["failed"], stats.outcomes["cancelled"]) == (1, 1, 0)


def test_a_dead_end_behind_a_rejected_draft_fails_nobody() -> None:
    # The draft walks into the dead end (three odd tokens); the target never takes its first step.
    rules = {"trap": lambda prefix: () if prefix[-2:] == (5, 5) else {4, 5}}
    frontend = ScriptedFrontend(rules)

    def logits(history: tuple[int, ...]) -> list[float]:
        return [0.0] * 4 + [2.0] + [1.0] + [0.0] * 26

    engine, _ = stepped_engine(
        frontend=frontend, logits=logits, draft_limit=3, drafter=lambda history: (5, 5, 5)
    )
    handle = engine.start(prompt(3), request("trap", tokens=6))
    run_until_idle(engine)
    result = handle.wait(timeout=0)
    assert result.generated_token_ids == (4,) * 6
    assert result.finish_reason is FinishReason.OUTPUT_LIMIT


def test_a_row_that_ends_inside_its_drafts_publishes_up_to_its_end() -> None:
    engine, _ = stepped_engine(draft_limit=4, drafter=lambda history: (0, 7, 7, 7))
    one = engine.start(prompt(3, 4), request("one"))
    free = engine.start(prompt(3, 5), request(tokens=9))
    run_until_idle(engine)
    assert one.wait(timeout=0).content == "<7>"
    assert (
        free.wait(timeout=0).generated_token_ids
        == solo((3, 5), request(tokens=9)).generated_token_ids
    )


def test_a_row_cancelled_during_its_round_commits_nothing() -> None:
    handles = []

    def cancel_first(name: str) -> None:
        if name == "decode" and len(handles) == 2:
            handles[0].cancel()

    engine, program = stepped_engine(fault=cancel_first)
    handles.append(engine.start(prompt(3, 4), request("long", tokens=9)))
    handles.append(engine.start(prompt(3, 5), request("even")))
    run_until_idle(engine)
    cancelled = handles[0].wait(timeout=0)
    assert cancelled.finish_reason is FinishReason.CANCELLED
    assert len(cancelled.generated_token_ids) == 1
    assert cancelled.content == f"<{cancelled.generated_token_ids[0]}>"
    expected = solo((3, 5), request("even")).generated_token_ids
    assert handles[1].wait(timeout=0).generated_token_ids == expected
    assert program.usage.rows_used == 0
    assert engine.stats().outcomes == {"completed": 1, "cancelled": 1, "failed": 0, "rejected": 0}


@pytest.mark.parametrize("temperature", [0.0, 0.9])
@pytest.mark.parametrize("draft_limit", [0, 3])
def test_free_rows_equal_their_run_in_a_batch_without_constraints(
    temperature: float, draft_limit: int
) -> None:
    drafter = ahead if draft_limit else None
    free = [
        ((3, 4 + row), request(tokens=25, temperature=temperature, seed=row)) for row in range(3)
    ]
    plain, _ = stepped_engine(draft_limit=draft_limit, drafter=drafter)
    handles = [plain.start(prompt(*ids), options) for ids, options in free]
    run_until_idle(plain)
    expected = [handle.wait(timeout=0).generated_token_ids for handle in handles]
    for place in range(4):
        mixed, program = stepped_engine(draft_limit=draft_limit, drafter=drafter)
        rows = [prompt(*ids) for ids, _ in free]
        rows.insert(place, prompt(9))
        options = [options for _, options in free]
        options.insert(place, request("long", tokens=25, temperature=temperature))
        handles = [mixed.start(*row) for row in zip(rows, options, strict=True)]
        run_until_idle(mixed)
        found = [handle.wait(timeout=0).generated_token_ids for handle in handles]
        constrained = found.pop(place)
        assert found == expected
        assert min(constrained) >= 3
        assert program.mask_calls


def test_a_batch_without_constraints_never_asks_for_masks() -> None:
    engine, program = stepped_engine()
    handle = engine.start(prompt(3, 4), request(tokens=9))
    run_until_idle(engine)
    assert handle.is_settled
    assert program.mask_calls == 0


def test_middle_prefill_chunks_take_no_mask_and_the_first_mask_is_reused() -> None:
    engine, program = stepped_engine(prefill_chunk_tokens=4)
    handle = engine.start(prompt(*range(3, 20)), request("one"))
    run_until_idle(engine)
    result = handle.wait(timeout=0)
    assert program.log.count("prefill") == 5
    assert program.mask_calls == 2
    assert result.constraint is not None
    # One at preparation, reused for the first token, and one for the token after it.
    assert result.constraint.mask_positions == 2
    assert result.constraint.mask_upload_bytes == 8
    assert result.constraint.terminated


def test_an_exact_prefix_hit_samples_under_its_own_mask() -> None:
    engine, _ = stepped_engine()
    ids = tuple(range(3, 12))
    first = engine.start(prompt(*ids), request("even"))
    run_until_idle(engine)
    second = engine.start(prompt(*ids), request("one"))
    run_until_idle(engine)
    assert first.wait(timeout=0).reused_prompt_tokens == 0
    result = second.wait(timeout=0)
    assert (result.reused_prompt_tokens, result.computed_prefill_tokens) == (len(ids), 0)
    assert result.content == "<7>"


def test_speculation_is_counted_per_position_and_short_rounds_apart() -> None:
    engine, _ = stepped_engine(draft_limit=4, drafter=ahead)
    handle = engine.start(prompt(3, 4), request("long", tokens=12))
    run_until_idle(engine)
    result = handle.wait(timeout=0)
    report = result.speculative
    assert report.accepted_per_position[0] >= report.accepted_per_position[-1]
    assert sum(report.accepted_per_position) == report.accepted_tokens
    assert report.rounds + report.fallback_steps == result.engine_timing.decode_rounds
    produced = report.accepted_tokens + result.engine_timing.decode_rounds + 1
    assert produced == len(result.generated_token_ids)


def test_drafts_behind_the_end_of_an_answer_are_not_accepted() -> None:
    # After EOS every column has a placeholder, which EOS happens to be.
    engine, _ = stepped_engine(draft_limit=4, drafter=lambda history: (0, 0, 0, 0))
    handle = engine.start(prompt(3, 4), request("one"))
    run_until_idle(engine)
    result = handle.wait(timeout=0)
    assert result.generated_token_ids == (7, 0)
    assert (result.speculative.rounds, result.speculative.drafted_tokens) == (1, 4)
    assert result.speculative.accepted_tokens == 1
    assert result.speculative.accepted_per_position == (1, 0, 0, 0)


class SwappedRows(ScriptedProgram):
    """Answers a round with its rows in another order."""

    def decode(
        self,
        sequences: Sequence[SequenceId],
        remaining_tokens: Sequence[int],
        masks: MaskProvider | None,
    ) -> PendingBatch:
        return super().decode(sequences[::-1], remaining_tokens[::-1], masks)


def test_a_batch_with_other_rows_is_refused() -> None:
    program = SwappedRows(hashed_logits(32))
    engine = Engine(program, ScriptedFrontend(), EngineOptions(max_concurrency=2), threaded=False)
    handles = [engine.start(prompt(3, 4 + row), request(tokens=9)) for row in range(2)]
    engine.run_cycle()
    engine.run_cycle()
    with pytest.raises(RowMismatch, match="holds sequences"):
        engine.run_cycle()
    assert program.log[-1] == "abort"
    assert not any(handle.is_settled for handle in handles)
