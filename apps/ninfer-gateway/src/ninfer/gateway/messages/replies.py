"""What Messages answers: the aggregate body and the events of a stream, from the same facts."""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

import msgspec

from ninfer.contract import FinishReason, GenerationResult

_STOP_REASONS = {
    FinishReason.OUTPUT_LIMIT: "max_tokens",
    FinishReason.CONTEXT_CAPACITY: "model_context_window_exceeded",
    FinishReason.STOP_STRING: "stop_sequence",
}


def message_head(model: str) -> dict[str, Any]:
    """Return the fields of a message before anything of it is known."""
    return {
        "id": f"msg_{secrets.token_hex(12)}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def aggregate(head: dict[str, Any], result: GenerationResult) -> dict[str, Any]:
    """Return the body of a request that did not stream."""
    reply = head | {"content": content_blocks(head, result)} | ending(result)
    return reply | {"usage": usage(result)} | constraint_field(result)


def content_blocks(head: dict[str, Any], result: GenerationResult) -> list[dict[str, Any]]:
    """Return the blocks of a finished answer, in the order a stream publishes them."""
    blocks: list[dict[str, Any]] = []
    if result.output.reasoning:
        text = result.output.reasoning
        blocks.append({"type": "thinking", "thinking": text, "signature": signature(text)})
    if result.content:
        blocks.append({"type": "text", "text": result.content})
    blocks.extend(
        tool_use(head, result, index) | {"input": msgspec.Raw(call.arguments_json.encode())}
        for index, call in enumerate(result.output.tool_calls)
    )
    return blocks


def tool_use(head: dict[str, Any], result: GenerationResult, index: int) -> dict[str, Any]:
    """Return a call's block without its input; ids follow the message's."""
    call = result.output.tool_calls[index]
    identity = f"toolu_{head['id'].removeprefix('msg_')}_{index}"
    return {"type": "tool_use", "id": identity, "name": call.name, "input": {}}


def ending(result: GenerationResult) -> dict[str, Any]:
    """Return why an answer ended."""
    reason = _STOP_REASONS.get(result.finish_reason)
    if reason is None:
        reason = "tool_use" if result.output.tool_calls else "end_turn"
    return {"stop_reason": reason, "stop_sequence": result.output.matched_stop_string}


def usage(result: GenerationResult) -> dict[str, int]:
    """Return token counts; input counts what was computed, cache reads what was not."""
    return prompt_usage(result.prompt.prompt_tokens, result.reused_prompt_tokens) | {
        "output_tokens": len(result.generated_token_ids)
    }


def prompt_usage(prompt_tokens: int, reused_tokens: int) -> dict[str, int]:
    """Return the counts that are known once a request is admitted."""
    return {
        "input_tokens": prompt_tokens - reused_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": reused_tokens,
        "output_tokens": 0,
    }


def constraint_field(result: GenerationResult) -> dict[str, Any]:
    """Return the constraint object as a field, or nothing."""
    return {} if result.constraint is None else {"constraint": result.constraint.record()}


def signature(thinking: str) -> str:
    """Return a thinking block's signature; clients hand it back, nothing depends on it."""
    return hashlib.blake2b(thinking.encode(), digest_size=24).hexdigest()
