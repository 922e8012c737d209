"""What Chat answers: the aggregate body and the chunks of a stream, from the same facts."""

from __future__ import annotations

import secrets
import time
from typing import Any

from ninfer.contract import Channel, FinishReason, GenerationResult, OutputDelta
from ninfer.gateway.openai.usage import chat_usage, final_timings, timings
from ninfer.runtime import PromptProgress, TimingSnapshot

_LENGTH_REASONS = (FinishReason.OUTPUT_LIMIT, FinishReason.CONTEXT_CAPACITY, FinishReason.NONE)
_CHANNEL_FIELDS = {Channel.CONTENT: "content", Channel.REASONING: "reasoning_content"}


class ChatReply:
    """The identity of one completion and everything that is said under it."""

    def __init__(self, model_id: str) -> None:
        self._suffix = secrets.token_hex(12)
        self._head = {
            "id": f"chatcmpl-{self._suffix}",
            "created": int(time.time()),
            "model": model_id,
        }

    def aggregate(self, result: GenerationResult) -> dict[str, Any]:
        """Return the body of a request that did not stream."""
        message: dict[str, Any] = {
            "role": "assistant",
            "content": result.content if result.content or not result.output.tool_calls else None,
            "refusal": None,
        }
        if result.output.reasoning:
            message["reasoning_content"] = result.output.reasoning
        if result.output.tool_calls:
            message["tool_calls"] = self._calls(result)
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": finish_reason(result),
        }
        body = {"object": "chat.completion", **self._head, "choices": [choice]}
        return body | {"usage": chat_usage(result)} | _report(result)

    def opening(self) -> dict[str, Any]:
        """Return the chunk that names the speaker."""
        return self._chunk({"role": "assistant", "content": ""})

    def progress(self, progress: PromptProgress, reused_tokens: int) -> dict[str, Any]:
        """Return the chunk that says how much of the prompt is computed."""
        counts = {
            "total": progress.prompt_tokens,
            "cache": reused_tokens,
            "processed": progress.computed_tokens,
        }
        return self._chunk({}) | {"prompt_progress": counts}

    def delta(self, delta: OutputDelta, speeds: TimingSnapshot | None = None) -> dict[str, Any]:
        """Return the chunk of newly published text, with the speeds so far where they are known."""
        chunk = self._chunk({_CHANNEL_FIELDS[delta.channel]: delta.text})
        return chunk if speeds is None else chunk | {"timings": timings(speeds)}

    def tool_calls(self, result: GenerationResult) -> dict[str, Any] | None:
        """Return the chunk with every call, whole; None where nothing was called."""
        if not result.output.tool_calls:
            return None
        calls = [{"index": i, **call} for i, call in enumerate(self._calls(result))]
        return self._chunk({"tool_calls": calls})

    def ending(self, result: GenerationResult, *, with_report: bool) -> dict[str, Any]:
        """Return the chunk with the finish reason; the report stands in the last chunk only."""
        chunk = self._chunk({}, finish_reason(result))
        return chunk | _report(result) if with_report else chunk

    def usage(self, result: GenerationResult) -> dict[str, Any]:
        """Return the chunk without choices that carries the usage and the report."""
        body = {"object": "chat.completion.chunk", **self._head, "choices": []}
        return body | {"usage": chat_usage(result)} | _report(result)

    def _calls(self, result: GenerationResult) -> list[dict[str, Any]]:
        # Conversations outlive a server, whose next one would count its requests from 1 again.
        return [
            {
                "id": f"call_{self._suffix}_{index}",
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments_json},
            }
            for index, call in enumerate(result.output.tool_calls)
        ]

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {"object": "chat.completion.chunk", **self._head, "choices": [choice]}


def finish_reason(result: GenerationResult) -> str:
    """Return the protocol's word for why an answer ended."""
    if result.finish_reason in _LENGTH_REASONS:
        return "length"
    return "tool_calls" if result.output.tool_calls else "stop"


def _report(result: GenerationResult) -> dict[str, Any]:
    report: dict[str, Any] = {"timings": final_timings(result)}
    if result.constraint is not None:
        report["constraint"] = result.constraint.record()
    return report
