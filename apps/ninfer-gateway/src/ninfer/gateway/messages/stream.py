"""The events of one streamed message: blocks open and close as the channel changes."""

from __future__ import annotations

from typing import Any

from ninfer.contract import Channel, GenerationResult, OutputDelta
from ninfer.gateway.messages.replies import (
    constraint_field,
    ending,
    prompt_usage,
    signature,
    tool_use,
    usage,
)
from ninfer.gateway.sse import EventStream
from ninfer.runtime import GenerationStart

_BLOCKS: dict[Channel, tuple[dict[str, Any], str, str]] = {
    Channel.CONTENT: ({"type": "text", "text": ""}, "text_delta", "text"),
    Channel.REASONING: (
        {"type": "thinking", "thinking": "", "signature": ""},
        "thinking_delta",
        "thinking",
    ),
}


class MessageStream:
    """Sends one message as events."""

    def __init__(self, stream: EventStream, head: dict[str, Any]) -> None:
        self._stream = stream
        self._head = head
        self._index = -1
        self._channel: Channel | None = None
        self._thoughts: list[str] = []

    async def start(self, start: GenerationStart) -> None:
        """Open the message once the request is admitted."""
        counts = prompt_usage(start.prompt.prompt_tokens, start.reused_prompt_tokens)
        await self._send("message_start", message=self._head | {"usage": counts})

    async def delta(self, delta: OutputDelta) -> None:
        """Send new text, in a new block where the channel changed."""
        if not delta.text:
            return
        block, kind, field = _BLOCKS[delta.channel]
        if delta.channel is not self._channel:
            await self._close_block()
            await self._open_block(block)
            self._channel = delta.channel
        if delta.channel is Channel.REASONING:
            self._thoughts.append(delta.text)
        await self._block_delta({"type": kind, field: delta.text})

    async def finish(self, result: GenerationResult) -> None:
        """Send the calls, why the message ended, and its end."""
        await self._close_block()
        for index, call in enumerate(result.output.tool_calls):
            await self._open_block(tool_use(self._head, result, index))
            await self._block_delta(
                {"type": "input_json_delta", "partial_json": call.arguments_json}
            )
            await self._send("content_block_stop", index=self._index)
        await self._send(
            "message_delta",
            delta=ending(result),
            usage=usage(result),
            **constraint_field(result),
        )
        await self._send("message_stop")

    async def _open_block(self, block: dict[str, Any]) -> None:
        self._index += 1
        await self._send("content_block_start", index=self._index, content_block=block)

    async def _close_block(self) -> None:
        if self._channel is None:
            return
        if self._channel is Channel.REASONING:
            signed = signature("".join(self._thoughts))
            await self._block_delta({"type": "signature_delta", "signature": signed})
        await self._send("content_block_stop", index=self._index)
        self._channel = None

    async def _block_delta(self, delta: dict[str, str]) -> None:
        await self._send("content_block_delta", index=self._index, delta=delta)

    async def _send(self, kind: str, **fields: Any) -> None:
        await self._stream.send({"type": kind, **fields}, event=kind)
