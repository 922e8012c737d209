"""The events of one streamed response: items open and close as the channel changes."""

from __future__ import annotations

from typing import Any

from ninfer.contract import Channel, GenerationResult, OutputDelta
from ninfer.gateway.failure import Failure
from ninfer.gateway.responses.replies import ResponseReply, text_part
from ninfer.gateway.sse import EventStream

_KINDS = {Channel.CONTENT: "response.output_text", Channel.REASONING: "response.reasoning_text"}


class ResponseStream:
    """Sends one response as numbered events."""

    def __init__(self, stream: EventStream, reply: ResponseReply) -> None:
        self._stream = stream
        self._reply = reply
        self._number = 0
        self._index = -1
        self._channel: Channel | None = None
        self._texts: list[str] = []

    async def start(self) -> None:
        """Open the response once the request is admitted."""
        unfinished = self._reply.unfinished()
        await self._send("response.created", response=unfinished)
        await self._send("response.in_progress", response=unfinished)

    async def delta(self, delta: OutputDelta) -> None:
        """Send new text, in a new item where the channel changed."""
        if not delta.text:
            return
        if delta.channel is not self._channel:
            await self._close_item()
            await self._open_item(delta.channel)
        self._texts.append(delta.text)
        await self._part_event(f"{_KINDS[delta.channel]}.delta", delta=delta.text)

    async def finish(self, result: GenerationResult, finished: dict[str, Any]) -> None:
        """Send the calls and the finished response."""
        if not result.content and not result.output.tool_calls:
            await self._close_item()
            await self._open_item(Channel.CONTENT)
        await self._close_item(finished["status"])
        for number in range(len(result.output.tool_calls)):
            await self._call(result, number)
        await self._send(f"response.{finished['status']}", response=finished)

    async def fail(self, failure: Failure) -> None:
        """Send the failed response."""
        await self._send("response.failed", response=self._reply.failed(failure))

    async def _open_item(self, channel: Channel) -> None:
        self._index += 1
        self._channel = channel
        self._texts = []
        item = self._reply.text_item(channel, self._index, None, "in_progress")
        await self._send("response.output_item.added", output_index=self._index, item=item)
        await self._part_event("response.content_part.added", part=text_part(channel, ""))

    async def _close_item(self, status: str = "completed") -> None:
        if self._channel is None:
            return
        channel, text = self._channel, "".join(self._texts)
        await self._part_event(f"{_KINDS[channel]}.done", text=text)
        await self._part_event("response.content_part.done", part=text_part(channel, text))
        item_status = status if channel is Channel.CONTENT else "completed"
        item = self._reply.text_item(channel, self._index, text, item_status)
        await self._send("response.output_item.done", output_index=self._index, item=item)
        self._channel = None

    async def _call(self, result: GenerationResult, number: int) -> None:
        self._index += 1
        item = self._reply.call_item(result, number, self._index)
        place = {"output_index": self._index, "item_id": item["id"]}
        begun = item | {"arguments": "", "status": "in_progress"}
        await self._send("response.output_item.added", output_index=self._index, item=begun)
        kind = "response.function_call_arguments"
        await self._send(f"{kind}.delta", **place, delta=item["arguments"])
        await self._send(f"{kind}.done", **place, name=item["name"], arguments=item["arguments"])
        await self._send("response.output_item.done", output_index=self._index, item=item)

    async def _part_event(self, kind: str, **fields: Any) -> None:
        assert self._channel is not None
        item = self._reply.text_item(self._channel, self._index, None)
        if "output_text" in kind:
            fields["logprobs"] = []
        await self._send(
            kind, item_id=item["id"], output_index=self._index, content_index=0, **fields
        )

    async def _send(self, kind: str, **fields: Any) -> None:
        record = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        await self._stream.send(record, event=kind)
