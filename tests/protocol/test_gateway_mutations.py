"""Rich requests with one value changed: whatever it becomes, it is served or refused by its place.

Every place of every body is taken in turn, so a field that nobody thought of is still tried.
"""

import copy
import json
import os
from collections.abc import Iterator

import httpx
import pytest

from ninfer.contract import EngineOptions
from support.answering import THINKING_TEMPLATE, scripted_engine
from support.serving import MODEL_ID, serving

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string", "maxLength": 3}, "b": {"enum": [1, "x"]}},
    "required": ["a"],
    "additionalProperties": False,
}
FUNCTION = {"name": "f", "description": "d", "parameters": SCHEMA, "strict": False}
CHAT = {
    "model": MODEL_ID,
    "messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "x"}]},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "r",
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "1", "content": "t"},
    ],
    "max_completion_tokens": 3,
    "temperature": 1,
    "top_p": 0.5,
    "top_k": 3,
    "min_p": 0.1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "seed": 1,
    "n": 1,
    "logprobs": False,
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "n", "schema": SCHEMA, "strict": True},
    },
    "tools": [{"type": "function", "function": FUNCTION}],
    "tool_choice": {
        "type": "allowed_tools",
        "allowed_tools": {
            "mode": "auto",
            "tools": [{"type": "function", "function": {"name": "f"}}],
        },
    },
    "parallel_tool_calls": True,
    "tool_constraints": "basic",
    "reasoning_effort": "low",
    "preserve_thinking": True,
    "chat_template_kwargs": {"v": 1},
    "stream_options": {"include_usage": True},
    "token_trace": True,
}
RESPONSES = {
    "model": MODEL_ID,
    "instructions": "i",
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "x"}]},
        {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "r"}]},
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": "t"},
    ],
    "max_output_tokens": 3,
    "store": True,
    "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}},
    "tools": [
        {"type": "function"} | FUNCTION,
        {"type": "namespace", "name": "s", "tools": [{"type": "function"} | FUNCTION]},
    ],
    "tool_choice": {
        "type": "allowed_tools",
        "mode": "auto",
        "tools": [{"type": "function", "name": "f", "namespace": "s"}],
    },
    "reasoning": {"effort": "low"},
    "metadata": {"k": "v"},
    "include": [],
}
MESSAGES = {
    "model": "m",
    "system": [{"type": "text", "text": "s"}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "x"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "r", "signature": "z"},
                {"type": "tool_use", "id": "1", "name": "f", "input": {"a": "b"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "1",
                    "content": [{"type": "text", "text": "t"}],
                }
            ],
        },
    ],
    "max_tokens": 3,
    "temperature": 1,
    "tools": [{"name": "f", "description": "d", "input_schema": SCHEMA, "strict": False}],
    "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
    "thinking": {"type": "adaptive"},
    "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}},
}
BODIES = {
    "/v1/chat/completions": CHAT,
    "/v1/responses": RESPONSES,
    "/v1/responses/input_tokens": RESPONSES,
    "/v1/messages": MESSAGES,
    "/v1/messages/count_tokens": MESSAGES,
}
GONE = object()
VALUES = (GONE, None, "", 10**30, [{}], {"type": "function"})
if os.environ.get("NINFER_SLOW"):
    VALUES += ("上", -1, True, [], {}, [[]])


@pytest.fixture(scope="module")
def client():
    options = EngineOptions(max_concurrency=4)
    engine = scripted_engine("hm\n</think>\n\n{}", options, template=THINKING_TEMPLATE)
    with engine, serving(engine) as url, httpx.Client(base_url=url, timeout=20) as client:
        yield client


def places(value: object, path: tuple = ()) -> Iterator[tuple]:
    """Yield the path of every value inside a body."""
    inner = value.items() if isinstance(value, dict) else ()
    inner = enumerate(value) if isinstance(value, list) else inner
    for key, part in inner:
        yield (*path, key)
        yield from places(part, (*path, key))


def changed(body: dict, path: tuple, value: object) -> dict:
    twin = copy.deepcopy(body)
    holder = twin
    for key in path[:-1]:
        holder = holder[key]
    if value is GONE:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return twin


@pytest.mark.parametrize("path", list(BODIES))
def test_the_unchanged_request_is_served(client, path):
    reply = client.post(path, json=BODIES[path])
    assert reply.status_code == 200, reply.text


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
def test_one_changed_value_is_served_or_refused_by_its_place(client, path):
    for place in places(BODIES[path]):
        for value in VALUES:
            body = changed(BODIES[path], place, value)
            reply = client.post(path, json=body)
            said = f"{place} = {value!r}: {reply.status_code} {reply.text[:300]}"
            assert reply.status_code in (200, 400, 404), said
            if reply.status_code == 200:
                continue
            error = reply.json()["error"]
            assert error["message"], said
            if "messages" not in path:
                assert error["param"], said
                assert error["param"].partition(".")[0].partition("[")[0].partition("/")[0] in {
                    *BODIES[path],
                    "structured_outputs",
                }, said


def test_the_server_is_alive_after_all_that(client):
    assert client.get("/health").status_code == 200
    assert json.loads(client.get("/openapi.json").text)["paths"]
