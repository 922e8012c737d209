"""The chunks of one streamed completion."""

from __future__ import annotations

from typing import Any

from ninfer.contract import GenerationResult, OutputDelta
from ninfer.gateway.chat.replies import ChatReply
from ninfer.gateway.sse import EventStream
from ninfer.runtime import GenerationStart, PromptProgress, TimingSnapshot


class ChatStream:
    """Sends one completion as chunks; with ``include_usage`` the last one carries the usage."""

    def __init__(
        self,
        stream: EventStream,
        reply: ChatReply,
        *,
        include_usage: bool = False,
        return_progress: bool = False,
    ) -> None:
        self._stream = stream
        self._reply = reply
        self._include_usage = include_usage
        self._return_progress = return_progress
        self._reused_tokens = 0
        self._speeds: TimingSnapshot | None = None

    async def start(self, start: GenerationStart) -> None:
        """Name the speaker once the request is admitted."""
        self._reused_tokens = start.reused_prompt_tokens
        await self._stream.send(self._reply.opening())

    async def progress(self, progress: PromptProgress) -> None:
        """Say how much of the prompt is computed, if the client wants to know."""
        if self._return_progress:
            await self._stream.send(self._reply.progress(progress, self._reused_tokens))

    def timed(self, speeds: TimingSnapshot) -> None:
        """Take the speeds that hold for the next text."""
        self._speeds = speeds

    async def delta(self, delta: OutputDelta) -> None:
        """Send new text."""
        await self._stream.send(self._reply.delta(delta, self._speeds))

    async def finish(self, result: GenerationResult, trace: dict[str, Any]) -> None:
        """Send the calls, why the answer ended, the report, and the end."""
        calls = self._reply.tool_calls(result)
        if calls is not None:
            await self._stream.send(calls)
        if self._include_usage:
            await self._stream.send(self._reply.ending(result, with_report=False))
            await self._stream.send(self._reply.usage(result) | trace)
        else:
            await self._stream.send(self._reply.ending(result, with_report=True) | trace)
        await self._stream.send_word("[DONE]")
