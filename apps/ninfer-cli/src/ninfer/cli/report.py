"""What a finished answer reports: lines for a reader, one record for a program."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from enum import Enum
from typing import Any

from ninfer.contract import ConstraintReport, GenerationResult, SpeculativeReport


def report_lines(result: GenerationResult, *, with_token_ids: bool = False) -> Iterator[str]:
    """Yield the report of one answer, a line at a time."""
    for call in result.output.tool_calls:
        yield f"call: {call.name} {call.arguments_json}"
    if with_token_ids:
        yield f"token ids: {' '.join(map(str, result.generated_token_ids))}"
    tokens = len(result.generated_token_ids)
    finish = f"finish: {result.finish_reason.value}, {tokens} tokens"
    stop = result.output.matched_stop_string
    yield finish if stop is None else f"{finish}, stopped at {stop!r}"
    if result.constraint is not None:
        yield _constraint_line(result.constraint)
    prompt = f"prompt: {result.prompt.prompt_tokens} tokens"
    yield f"{prompt}, {result.reused_prompt_tokens} reused"
    timings = result.timings
    yield (
        f"seconds: prepare {timings.prepare:.3f}, first token {timings.first_token:.3f}, "
        f"prefill {timings.prefill:.3f}, decode {timings.decode:.3f}, total {timings.total:.3f}"
    )
    yield f"speed: {result.tokens_per_second:.1f} tokens/s"
    if result.speculative.enabled:
        yield _speculation_line(result.speculative)


def result_record(result: GenerationResult) -> dict[str, Any]:
    """Return the answer and its report as plain JSON values."""
    return {
        "content": result.content,
        "reasoning": result.output.reasoning,
        "tool_calls": [
            {"name": call.name, "arguments": call.arguments_json}
            for call in result.output.tool_calls
        ],
        "finish_reason": result.finish_reason.value,
        "matched_stop_string": result.output.matched_stop_string,
        "constraint": result.constraint.record() if result.constraint else None,
        "prompt_tokens": result.prompt.prompt_tokens,
        "reused_prompt_tokens": result.reused_prompt_tokens,
        "generated_token_ids": list(result.generated_token_ids),
        "tokens_per_second": result.tokens_per_second,
        "sampling": _plain(result.sampling),
        "timings_seconds": _plain(result.timings),
        "speculative": _plain(result.speculative),
    }


def _constraint_line(report: ConstraintReport) -> str:
    complete = "complete" if report.complete else "incomplete"
    terminated = "terminated" if report.terminated else "not terminated"
    return (
        f"constraint: {report.branch.value}, {complete}, {terminated}, cache {report.cache.value}, "
        f"{report.mask_positions} mask positions, {report.mask_seconds * 1e3:.1f} ms of masks"
    )


def _speculation_line(report: SpeculativeReport) -> str:
    places = ", ".join(str(count) for count in report.accepted_per_position)
    return (
        f"speculation: {report.backend}, {report.rounds} rounds, {report.accepted_tokens} of "
        f"{report.drafted_tokens} drafts accepted ({places or 'none'} by place), "
        f"{report.fallback_steps} steps without drafts"
    )


def _plain(record: Any) -> dict[str, Any]:
    values = dataclasses.asdict(record)
    return {k: v.value if isinstance(v, Enum) else v for k, v in values.items()}
