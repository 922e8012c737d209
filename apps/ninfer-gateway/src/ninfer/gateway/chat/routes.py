"""``POST /v1/chat/completions``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from sanic import Blueprint, Request
from sanic.response import HTTPResponse

from ninfer.contract import GenerationResult, NInferError, OutputDelta
from ninfer.gateway.chat.replies import ChatReply
from ninfer.gateway.chat.stream import ChatStream
from ninfer.gateway.chat.translate import translate
from ninfer.gateway.chat.wire import ChatRequest
from ninfer.gateway.generation import admitted, collected
from ninfer.gateway.openai.errors import error_record
from ninfer.gateway.sse import EventStream
from ninfer.gateway.state import failure_of, gateway_of, json_response, remember_fields
from ninfer.gateway.wire import read_body
from ninfer.runtime import GenerationEnd, PromptProgress, StreamEvent, TimingSnapshot

chat = Blueprint("chat")


@chat.post("/v1/chat/completions")
async def complete(request: Request) -> HTTPResponse | None:
    """Answer one conversation, in one body or as a stream of chunks."""
    gateway = gateway_of(request)
    body = read_body(request.body, ChatRequest)
    gateway.require_model(body.model)
    wanted = translate(body, gateway.options.answers)
    remember_fields(request, wanted.fields)
    reply = ChatReply(gateway.options.model_id)

    async def trace(result: GenerationResult) -> dict[str, Any]:
        if not body.token_trace:
            return {}
        return {"token_trace": await gateway.service.trace(wanted.options, result)}

    with await gateway.service.start(wanted.prompt, wanted.options) as handle:
        events = gateway.service.events(handle)
        if not body.stream:
            result = await collected(events)
            return json_response(reply.aggregate(result) | await trace(result))
        start = await admitted(events)
        stream = await EventStream.open(request)
        sender = ChatStream(
            stream,
            reply,
            include_usage=bool(body.stream_options and body.stream_options.include_usage),
            return_progress=bool(body.return_progress),
        )
        await sender.start(start)
        await _stream(request, stream, sender, events, trace)
        return None


async def _stream(
    request: Request,
    stream: EventStream,
    sender: ChatStream,
    events: AsyncIterator[StreamEvent | None],
    trace: Callable[[GenerationResult], Awaitable[dict[str, Any]]],
) -> None:
    try:
        async for event in events:
            if event is None:
                await stream.keep_alive()
            elif isinstance(event, PromptProgress):
                await sender.progress(event)
            elif isinstance(event, TimingSnapshot):
                sender.timed(event)
            elif isinstance(event, OutputDelta):
                await sender.delta(event)
            elif isinstance(event, GenerationEnd):
                await sender.finish(event.result, await trace(event.result))
    except NInferError as error:
        await stream.send(error_record(failure_of(request, error)))
    await stream.close()
