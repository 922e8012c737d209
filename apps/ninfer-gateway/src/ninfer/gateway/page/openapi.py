"""The OpenAPI document: paths by hand, request bodies from the wire records themselves."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import msgspec

from ninfer.gateway.chat.wire import ChatRequest
from ninfer.gateway.messages.wire import MessagesRequest
from ninfer.gateway.responses.wire import ResponsesRequest

_BODIES: tuple[type[msgspec.Struct], ...] = (ChatRequest, ResponsesRequest, MessagesRequest)
_ANSWERS: dict[str, tuple[str, type[msgspec.Struct]]] = {
    "/v1/chat/completions": ("Answer a conversation (OpenAI Chat).", ChatRequest),
    "/v1/responses": ("Answer a conversation (OpenAI Responses).", ResponsesRequest),
    "/v1/responses/input_tokens": ("Count the tokens of a prompt.", ResponsesRequest),
    "/v1/messages": ("Answer a conversation (Anthropic Messages).", MessagesRequest),
    "/v1/messages/count_tokens": ("Count the tokens of a prompt.", MessagesRequest),
}
_LOOK_UPS = {
    "/health": "Whether requests are taken.",
    "/metrics": "Counters in the Prometheus text format.",
    "/v1/models": "The served model.",
    "/v1/models/{id}": "The served model.",
    "/v1/responses/{id}": "A stored response.",
    "/v1/responses/{id}/input_items": "The conversation that led to a stored response.",
}


def document(model_id: str) -> dict[str, Any]:
    """Return the document of a server."""
    schemas, components = msgspec.json.schema_components(
        _BODIES, ref_template="#/components/schemas/{name}"
    )
    bodies: dict[type[msgspec.Struct], dict[str, Any]] = dict(zip(_BODIES, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {
        path: {"post": _operation(summary) | {"requestBody": _body(bodies[kind])}}
        for path, (summary, kind) in _ANSWERS.items()
    }
    for path, summary in _LOOK_UPS.items():
        paths[path] = {"get": _operation(summary)}
        if "{id}" in path:
            paths[path]["parameters"] = [_IDENTITY]
    paths["/v1/responses/{id}"]["delete"] = _operation("Let go of a stored response.")
    return {
        "openapi": "3.1.0",
        "info": {"title": f"NInfer serving {model_id}", "version": version("ninfer-gateway")},
        "paths": paths,
        "components": {"schemas": components},
    }


_IDENTITY = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}


def _operation(summary: str) -> dict[str, Any]:
    return {
        "summary": summary,
        "responses": {
            "200": {"description": "The answer."},
            "4XX": {"description": "The caller can fix it; the body says where."},
            "5XX": {"description": "Try again later, or our fault."},
        },
    }


def _body(schema: dict[str, Any]) -> dict[str, Any]:
    return {"required": True, "content": {"application/json": {"schema": schema}}}
