"""The response object, unfinished and finished, and its output items."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from ninfer.contract import Channel, FinishReason, GenerationResult
from ninfer.gateway.failure import Failure
from ninfer.gateway.openai.usage import final_timings
from ninfer.gateway.responses.items import callable_name
from ninfer.gateway.responses.wire import EchoedFields, ResponsesRequest
from ninfer.gateway.wire import raw_text

_LENGTH_REASONS = (FinishReason.OUTPUT_LIMIT, FinishReason.CONTEXT_CAPACITY, FinishReason.NONE)


class ResponseReply:
    """The identity of one response and everything that is said under it."""

    def __init__(self, request: ResponsesRequest, echoed: EchoedFields) -> None:
        self.suffix = secrets.token_hex(12)
        self.id = f"resp_{self.suffix}"
        self._namespaces = _namespaces(request)
        self._head = {
            "id": self.id,
            "object": "response",
            "created_at": int(time.time()),
            "model": request.model,
            "instructions": request.instructions,
            "previous_response_id": request.previous_response_id,
            "max_output_tokens": request.max_output_tokens,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "parallel_tool_calls": request.parallel_tool_calls is not False,
            "tool_choice": _as_sent(echoed.tool_choice, "auto"),
            "tools": _as_sent(echoed.tools, []),
            "text": _as_sent(echoed.text, {"format": {"type": "text"}}),
            "reasoning": _as_sent(echoed.reasoning, {"effort": None, "summary": None}),
            "truncation": "disabled",
            "store": request.store is not False,
            "background": False,
            "metadata": request.metadata or {},
            "user": request.user,
            "error": None,
            "incomplete_details": None,
        }

    def unfinished(self) -> dict[str, Any]:
        """Return the object before anything was generated."""
        return self._head | {"status": "in_progress", "output": [], "usage": None}

    def finished(self, result: GenerationResult) -> dict[str, Any]:
        """Return the object of an ended request."""
        is_cut = result.finish_reason in _LENGTH_REASONS
        body = self._head | {
            "status": "incomplete" if is_cut else "completed",
            "output": self.output(result),
            "usage": _usage(result),
            "timings": final_timings(result),
        }
        if is_cut:
            body["incomplete_details"] = {"reason": "max_output_tokens"}
        if result.constraint is not None:
            body["constraint"] = result.constraint.record()
        return body

    def failed(self, failure: Failure) -> dict[str, Any]:
        """Return the object of a request that failed after it had started."""
        error = {"code": failure.code or "server_error", "message": failure.message}
        return self.unfinished() | {"status": "failed", "error": error}

    def output(self, result: GenerationResult) -> list[dict[str, Any]]:
        """Return the items of an ended request, in the order a stream publishes them."""
        items = []
        if result.output.reasoning:
            items.append(self.text_item(Channel.REASONING, 0, result.output.reasoning))
        if result.content or not result.output.tool_calls:
            is_cut = result.finish_reason in _LENGTH_REASONS
            status = "incomplete" if is_cut else "completed"
            items.append(self.text_item(Channel.CONTENT, len(items), result.content, status))
        for number in range(len(result.output.tool_calls)):
            items.append(self.call_item(result, number, len(items)))
        return items

    def text_item(
        self, channel: Channel, index: int, text: str | None, status: str = "completed"
    ) -> dict[str, Any]:
        """Return a message or reasoning item; without text it has no part yet."""
        parts = [] if text is None else [text_part(channel, text)]
        if channel is Channel.REASONING:
            identity = f"rs_{self.suffix}_{index}"
            item = {"id": identity, "type": "reasoning", "summary": [], "content": parts}
        else:
            identity = f"msg_{self.suffix}_{index}"
            item = {"id": identity, "type": "message", "role": "assistant", "content": parts}
        return item | {"status": status}

    def call_item(self, result: GenerationResult, number: int, index: int) -> dict[str, Any]:
        """Return a complete function call item."""
        call = result.output.tool_calls[number]
        namespace, name = self._namespaces.get(call.name, (None, call.name))
        item = {
            "id": f"fc_{self.suffix}_{index}",
            "type": "function_call",
            "call_id": f"call_{self.suffix}_{number}",
            "name": name,
            "arguments": call.arguments_json,
            "status": "completed",
        }
        return item if namespace is None else item | {"namespace": namespace}


def text_part(channel: Channel, text: str) -> dict[str, Any]:
    """Return the one part of a message or reasoning item."""
    if channel is Channel.REASONING:
        return {"type": "reasoning_text", "text": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _as_sent(field: msgspec.Raw, default: object) -> object:
    # Numbers and the order of keys stay as they were written; only white space goes, because a
    # line break would end an event of a stream.
    if raw_text(field) is None:
        return default
    return msgspec.Raw(msgspec.json.format(bytes(field), indent=-1))


def _namespaces(request: ResponsesRequest) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for tool in request.tools or []:
        members: Sequence[Any] = tool.tools or []
        for member in members if tool.type == "namespace" and tool.name else []:
            found[callable_name(tool.name, member.name)] = (str(tool.name), str(member.name))
    return found


def _usage(result: GenerationResult) -> dict[str, Any]:
    prompt, completion = result.prompt.prompt_tokens, len(result.generated_token_ids)
    return {
        "input_tokens": prompt,
        "input_tokens_details": {
            "cached_tokens": result.reused_prompt_tokens,
            "cache_write_tokens": 0,
        },
        "output_tokens": completion,
        "output_tokens_details": {"reasoning_tokens": result.output.reasoning_tokens},
        "total_tokens": prompt + completion,
    }
