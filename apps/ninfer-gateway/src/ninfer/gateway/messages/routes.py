"""``POST /v1/messages`` and ``/v1/messages/count_tokens``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from sanic import Blueprint, Request
from sanic.response import HTTPResponse

from ninfer.contract import NInferError, OutputDelta
from ninfer.gateway.failure import WireError
from ninfer.gateway.generation import admitted, collected
from ninfer.gateway.messages.errors import error_record
from ninfer.gateway.messages.replies import aggregate, message_head
from ninfer.gateway.messages.stream import MessageStream
from ninfer.gateway.messages.translate import prompt_fields, prompt_of, translate
from ninfer.gateway.messages.wire import MessagesRequest
from ninfer.gateway.sse import EventStream
from ninfer.gateway.state import (
    failure_of,
    gateway_of,
    json_response,
    remember_fields,
    request_id_of,
)
from ninfer.gateway.wire import read_body
from ninfer.runtime import GenerationEnd, StreamEvent

messages = Blueprint("messages")


@messages.post("/v1/messages")
async def create_message(request: Request) -> HTTPResponse | None:
    """Answer one conversation, in one body or as a stream of events."""
    gateway = gateway_of(request)
    body = _read(request)
    wanted = translate(body, gateway.options.answers)
    remember_fields(request, wanted.fields)
    head = message_head(body.model)
    with await gateway.service.start(wanted.prompt, wanted.options) as handle:
        events = gateway.service.events(handle)
        if not body.stream:
            return json_response(aggregate(head, await collected(events)))
        await _stream(request, head, events)
        return None


@messages.post("/v1/messages/count_tokens")
async def count_tokens(request: Request) -> HTTPResponse:
    """Count the tokens of a prompt; no constraint is compiled."""
    body = _read(request)
    gateway = gateway_of(request)
    placed = prompt_of(body, gateway.options.answers)
    remember_fields(request, prompt_fields(placed))
    tokens = await gateway.service.count_tokens(placed.prompt)
    return json_response({"input_tokens": tokens})


def _read(request: Request) -> MessagesRequest:
    body = read_body(request.body, MessagesRequest)
    if not body.model:
        raise WireError("an empty label", param="model")
    return body


async def _stream(
    request: Request, head: dict[str, Any], events: AsyncIterator[StreamEvent | None]
) -> None:
    start = await admitted(events)
    stream = await EventStream.open(request)
    sender = MessageStream(stream, head)
    await sender.start(start)
    try:
        async for event in events:
            if event is None:
                await stream.keep_alive()
            elif isinstance(event, OutputDelta):
                await sender.delta(event)
            elif isinstance(event, GenerationEnd):
                await sender.finish(event.result)
    except NInferError as error:
        failure = failure_of(request, error)
        await stream.send(error_record(failure, request_id_of(request)), event="error")
    await stream.close()
