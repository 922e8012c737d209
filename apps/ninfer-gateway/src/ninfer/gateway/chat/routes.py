"""``POST /v1/chat/completions``."""

from __future__ import annotations

from collections.abc import AsyncIterator

from sanic import Blueprint, Request
from sanic.response import HTTPResponse

from ninfer.contract import NInferError, OutputDelta
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
        if not body.stream:
            return json_response(reply.aggregate(await collected(events)))
        await admitted(events)
        include_usage = bool(body.stream_options and body.stream_options.include_usage)
        await _stream(request, reply, events, include_usage=include_usage)
        return None


async def _stream(
    request: Request,
    reply: ChatReply,
    events: AsyncIterator[StreamEvent | None],
    *,
    include_usage: bool,
) -> None:
    stream = await EventStream.open(request)
    await stream.send(reply.opening())
    try:
        async for event in events:
            if event is None:
                await stream.keep_alive()
            elif isinstance(event, OutputDelta):
                await stream.send(reply.delta(event))
            elif isinstance(event, GenerationEnd):
                await _finish(stream, reply, event, include_usage=include_usage)
    except NInferError as error:
        await stream.send(error_record(failure_of(request, error)))
    await stream.close()


async def _finish(
    stream: EventStream, reply: ChatReply, end: GenerationEnd, *, include_usage: bool
) -> None:
    calls = reply.tool_calls(end.result)
    if calls is not None:
        await stream.send(calls)
    await stream.send(reply.ending(end.result, with_report=not include_usage))
    if include_usage:
        await stream.send(reply.usage(end.result))
    await stream.send_word("[DONE]")
