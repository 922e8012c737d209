"""``/v1/responses``: create, look up, delete, and count."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import msgspec
from sanic import Blueprint, Request
from sanic.response import HTTPResponse

from ninfer.contract import GenerationResult, NInferError, OutputDelta
from ninfer.gateway.failure import WireError
from ninfer.gateway.generation import admitted, collected
from ninfer.gateway.responses.items import History
from ninfer.gateway.responses.replies import ResponseReply
from ninfer.gateway.responses.store import ResponseStore, StoredResponse
from ninfer.gateway.responses.stream import ResponseStream
from ninfer.gateway.responses.translate import prompt_fields, prompt_of, translate
from ninfer.gateway.responses.wire import (
    ContentPart,
    EchoedFields,
    InputItem,
    ResponsesRequest,
)
from ninfer.gateway.sse import EventStream
from ninfer.gateway.state import failure_of, gateway_of, json_response, remember_fields
from ninfer.gateway.wire import read_body
from ninfer.runtime import GenerationEnd, StreamEvent

responses = Blueprint("responses")


@responses.post("/v1/responses")
async def create_response(request: Request) -> HTTPResponse | None:
    """Answer one conversation, in one body or as a stream of events."""
    gateway, store = gateway_of(request), _store(request)
    body = read_body(request.body, ResponsesRequest)
    gateway.require_model(body.model)
    history = _history(body, store)
    wanted = translate(body, history, gateway.options.answers)
    remember_fields(request, wanted.fields)
    if body.store is not False:
        store.require_room(history.items)
    reply = ResponseReply(body, read_body(request.body, EchoedFields))
    with await gateway.service.start(wanted.prompt, wanted.options) as handle:
        events = gateway.service.events(handle)

        def finish(result: GenerationResult) -> dict[str, Any]:
            finished = reply.finished(result)
            if body.store is not False:
                store.put(reply.id, StoredResponse(finished, history.items))
            return finished

        if not body.stream:
            return json_response(finish(await collected(events)))
        await _stream(request, reply, events, finish)
        return None


@responses.post("/v1/responses/input_tokens")
async def count_input_tokens(request: Request) -> HTTPResponse:
    """Count the tokens of a prompt; no constraint is compiled."""
    gateway = gateway_of(request)
    body = read_body(request.body, ResponsesRequest)
    gateway.require_model(body.model)
    placed = prompt_of(body, _history(body, _store(request)), gateway.options.answers)
    remember_fields(request, prompt_fields(body, placed))
    tokens = await gateway.service.count_tokens(placed.prompt)
    return json_response({"object": "response.input_tokens", "input_tokens": tokens})


@responses.get("/v1/responses/<identity:str>")
async def show_response(request: Request, identity: str) -> HTTPResponse:
    """Show a stored response."""
    return json_response(_store(request).get(identity).response)


@responses.delete("/v1/responses/<identity:str>")
async def delete_response(request: Request, identity: str) -> HTTPResponse:
    """Let go of a stored response."""
    _store(request).delete(identity)
    return json_response({"id": identity, "object": "response", "deleted": True})


@responses.get("/v1/responses/<identity:str>/input_items")
async def list_input_items(request: Request, identity: str) -> HTTPResponse:
    """List the conversation that led to a stored response, page by page."""
    items = [_shown(item) for item in _store(request).get(identity).input_items]
    if _query(request, "order", "desc", ("asc", "desc")) == "desc":
        items.reverse()
    after = request.args.get("after")
    if after is not None:
        ids = [item["id"] for item in items]
        if after not in ids:
            raise WireError(f"no item {after!r}", param="after")
        items = items[ids.index(after) + 1 :]
    page = items[: _limit(request)]
    return json_response(
        {
            "object": "list",
            "data": page,
            "first_id": page[0]["id"] if page else None,
            "last_id": page[-1]["id"] if page else None,
            "has_more": len(page) < len(items),
        }
    )


@responses.post("/v1/responses/<identity:str>/<verb:cancel|compact>")
async def refuse_verb(request: Request, identity: str, verb: str) -> HTTPResponse:
    """Refuse what only background responses could have."""
    _store(request).get(identity)
    fact = f"{verb} is not served: no response runs in the background"
    raise WireError(fact, code=f"{verb}_not_supported")


def _store(request: Request) -> ResponseStore:
    return cast(ResponseStore, request.app.ctx.responses)


def _history(body: ResponsesRequest, store: ResponseStore) -> History:
    earlier: tuple[InputItem, ...] = ()
    if body.previous_response_id is not None:
        earlier = store.get(body.previous_response_id, "previous_response_id").conversation()
    new = body.input
    if isinstance(new, str):
        part = ContentPart("input_text", new)
        new = [InputItem(role="user", content=[part])]
    numbered = [
        msgspec.structs.replace(item, id=item.id or f"item_{len(earlier) + i}")
        for i, item in enumerate(new)
    ]
    return History((*earlier, *numbered), len(earlier))


def _shown(item: InputItem) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(item)
    return {"type": item.type} | shown


def _limit(request: Request) -> int:
    text = request.args.get("limit", "20")
    if not text.isdecimal() or not 1 <= int(text) <= 100:
        raise WireError(f"{text!r} is not in 1..100", param="limit")
    return int(text)


def _query(request: Request, name: str, default: str, known: tuple[str, ...]) -> str:
    value: str = request.args.get(name, default)
    if value not in known:
        fact = f"{value!r} is not one of {', '.join(known)}"
        raise WireError(fact, param=name)
    return value


async def _stream(
    request: Request,
    reply: ResponseReply,
    events: AsyncIterator[StreamEvent | None],
    finish: Callable[[GenerationResult], dict[str, Any]],
) -> None:
    await admitted(events)
    stream = await EventStream.open(request)
    sender = ResponseStream(stream, reply)
    await sender.start()
    try:
        async for event in events:
            if event is None:
                await stream.keep_alive()
            elif isinstance(event, OutputDelta):
                await sender.delta(event)
            elif isinstance(event, GenerationEnd):
                await sender.finish(event.result, finish(event.result))
    except NInferError as error:
        await sender.fail(failure_of(request, error))
    await stream.close()
