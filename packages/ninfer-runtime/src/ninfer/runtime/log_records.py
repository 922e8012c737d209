"""Requests, results and errors as request-log records: numbers and enums, never text.

Source: reference contract section 5, request log.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ninfer.contract import (
    GenerationResult,
    NInferError,
    RequestError,
    SchedulingEvent,
)
from ninfer.runtime.request import EngineRequest

Record = dict[str, Any]


def start_record(request: EngineRequest) -> Record:
    """Return ``request_start``: what was asked for, without its text."""
    return {"event": "request_start", "request": _request(request)}


def rejected_record(error: NInferError) -> Record:
    """Return ``request_rejected``."""
    return {"event": "request_rejected", "error": _error(error)}


def scheduling_record(request: EngineRequest, event: SchedulingEvent) -> Record:
    """Return ``request_scheduling``: one step of pause and resume."""
    return {
        "event": "request_scheduling",
        "request_id": request.request_id,
        "transition": event.transition.value,
        "route": event.route.value,
    }


def done_record(request: EngineRequest, result: GenerationResult) -> Record:
    """Return ``request_done``: everything measured about a finished request."""
    timings = asdict(result.timings)
    return {
        "event": "request_done",
        "request": _request(request),
        "result": {
            "finish_reason": result.finish_reason.value,
            "prompt_tokens": result.prompt.prompt_tokens,
            "completion_tokens": len(result.generated_token_ids),
            "cached_tokens": result.reused_prompt_tokens,
            "computed_prefill_tokens": result.computed_prefill_tokens,
            "prefix_reuse_path": result.prefix_reuse_path.value,
            "tool_call_count": len(result.output.tool_calls),
            "tool_call_parse": _plain(asdict(result.output.tool_call_parse)),
            "generated_token_ids": list(result.generated_token_ids),
        },
        "timings_seconds": {
            "prepare": timings["prepare"],
            "ttft": timings["first_token"],
            "first_output": timings["first_output"],
            "vision": timings["vision"],
            "prefill": timings["prefill"],
            "decode": timings["decode"],
            "total": timings["total"],
        },
        "speculative": asdict(result.speculative),
        "engine_timing": asdict(result.engine_timing),
        "scheduling": asdict(result.scheduling),
        "admission": {"bypasses": request.bypasses},
        "thinking": None if result.thinking is None else asdict(result.thinking),
        "constraint": None if result.constraint is None else result.constraint.record(),
    }


def error_record(request: EngineRequest, error: NInferError) -> Record:
    """Return ``request_error``."""
    return {
        "event": "request_error",
        "request": _request(request),
        "completion_tokens": len(request.tokens),
        "error": _error(error),
    }


def _request(request: EngineRequest) -> Record:
    constraint = request.options.constraint
    return {
        "id": request.request_id,
        "prompt_tokens": request.prepared.prompt_tokens,
        "output_limit": request.output_limit,
        "constraint": None if constraint is None else constraint.kind.value,
        "sampling": asdict(request.sampling),
        "allow_prefix_reuse": request.options.execution.allow_prefix_reuse,
    }


def _error(error: NInferError) -> Record:
    record: Record = {"code": error.code, "type": type(error).__name__}
    # A request error may quote the caller's text; everything else is our own wording.
    if not isinstance(error, RequestError):
        record["message"] = str(error)
    return record


def _plain(record: Record) -> Record:
    return {key: getattr(value, "value", value) for key, value in record.items()}
