"""``POST /v1/chat/completions``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from sanic import Blueprint, Request
from sanic.response import HTTPResponse

from ninfer.contract import GenerationResult, NInferError, OutputDelta, RequestOptions
from ninfer.gateway.chat.replies import ChatReply
from ninfer.gateway.chat.translate import translate
from ninfer.gateway.chat.wire import ChatRequest
from ninfer.gateway.generation import admitted, collected
from ninfer.gateway.openai.errors import error_record
from ninfer.gateway.sse import EventStream
from ninfer.gateway.state import failure_of, gateway_of, json_response, remember_fields
from ninfer.gateway.wire import read_body
from ninfer.runtime import GenerationEnd, StreamEvent

chat = Blueprint("chat")


@chat.post("/v1/chat/completions")
async def complete(request: Request) -> HTTPResponse | None:
    """Answer one conversation, in one body or as a stream of chunks."""
    gateway = gateway_of(request)
    body = read_body(request.body, ChatRequest)
    gateway.require_model(body.model)
    wanted = translate(body, gateway.options.default_max_tokens)
    remember_fields(request, wanted.fields)
    reply = ChatReply(gateway.options.model_id)
    with await gateway.service.start(wanted.prompt, wanted.options) as handle:
        events = gateway.service.events(handle)
        stream = _ChatStream(reply, _tracer(request, body, wanted.options))
        if not body.stream:
            result = await collected(events)
            return json_response(reply.aggregate(result) | await stream.trace(result))
        await admitted(events)
        stream.include_usage = bool(body.stream_options and body.stream_options.include_usage)
        await stream.send(request, events)
        return None


Trace = Callable[[GenerationResult], Awaitable[dict[str, Any]]]


def _tracer(request: Request, body: ChatRequest, options: RequestOptions) -> Trace:
    async def trace(result: GenerationResult) -> dict[str, Any]:
        if not body.token_trace:
            return {}
        return {"token_trace": await gateway_of(request).service.trace(options, result)}

    return trace


class _ChatStream:
    """Sends one completion as chunks."""

    def __init__(self, reply: ChatReply, trace: Trace) -> None:
        self.include_usage = False
        self.trace = trace
        self._reply = reply

    async def send(self, request: Request, events: AsyncIterator[StreamEvent | None]) -> None:
        stream = await EventStream.open(request)
        await stream.send(self._reply.opening())
        try:
            async for event in events:
                if event is None:
                    await stream.keep_alive()
                elif isinstance(event, OutputDelta):
                    await stream.send(self._reply.delta(event))
                elif isinstance(event, GenerationEnd):
                    await self._finish(stream, event.result)
        except NInferError as error:
            await stream.send(error_record(failure_of(request, error)))
        await stream.close()

    async def _finish(self, stream: EventStream, result: GenerationResult) -> None:
        calls = self._reply.tool_calls(result)
        if calls is not None:
            await stream.send(calls)
        trace = await self.trace(result)
        if self.include_usage:
            await stream.send(self._reply.ending(result, with_report=False))
            await stream.send(self._reply.usage(result) | trace)
        else:
            await stream.send(self._reply.ending(result, with_report=True) | trace)
        await stream.send_word("[DONE]")
