"""Calling policies against a model that wants something else, and calls that a limit cuts off."""

from contextlib import contextmanager

import httpx
import pytest

from ninfer.contract import EngineOptions
from support.answering import scripted_engine
from support.serving import MODEL_ID, serving

PARAMETERS = {
    "type": "object",
    "properties": {"n": {"enum": [1, 2]}},
    "required": ["n"],
    "additionalProperties": False,
}
CALL = "<tool_call>\n<function={}>\n<parameter=n>\n1\n</parameter>\n</function>\n</tool_call>"
PROSE = "hello, I would rather talk"
NAMES = ("first", "second")


@pytest.fixture(scope="module")
def talker():
    with scripted_engine(PROSE, EngineOptions(max_concurrency=2)) as engine:
        with serving(engine) as url:
            yield url


@contextmanager
def calling_server():
    script = "\n".join(CALL.format(name) for name in NAMES)
    with scripted_engine(script, EngineOptions(max_concurrency=2)) as engine:
        with serving(engine) as url:
            yield url


@pytest.fixture(scope="module")
def caller():
    with calling_server() as url:
        yield url


def ask(url: str, protocol: str, *, choice: object = None, limit: int = 600, **extra) -> dict:
    """Return text, calls and finish word of one request, whichever protocol carries it."""
    function = {"parameters": PARAMETERS, "strict": True}
    body: dict = {"model": MODEL_ID, "temperature": 0, "seed": 1} | extra
    if protocol == "chat":
        tools = [{"type": "function", "function": {"name": name} | function} for name in NAMES]
        body |= {"messages": [{"role": "user", "content": "hello"}], "max_tokens": limit}
    elif protocol == "responses":
        tools = [{"type": "function", "name": name} | function for name in NAMES]
        body |= {"input": "hello", "max_output_tokens": limit}
    else:
        tools = [{"name": n, "input_schema": PARAMETERS, "strict": True} for n in NAMES]
        body |= {"messages": [{"role": "user", "content": "hello"}], "max_tokens": limit}
    body |= {"tools": tools} | ({} if choice is None else {"tool_choice": choice})
    paths = {"chat": "chat/completions", "responses": "responses", "messages": "messages"}
    reply = httpx.post(f"{url}/v1/{paths[protocol]}", json=body, timeout=60)
    assert reply.status_code == 200, reply.text
    return _read(protocol, reply.json())


def _read(protocol: str, body: dict) -> dict:
    if protocol == "chat":
        message = body["choices"][0]["message"]
        calls = [call["function"]["name"] for call in message.get("tool_calls", [])]
        return {
            "text": message["content"] or "",
            "calls": calls,
            "ids": [call["id"] for call in message.get("tool_calls", [])],
            "finish": body["choices"][0]["finish_reason"],
        }
    if protocol == "responses":
        texts = [p["text"] for i in body["output"] if i["type"] == "message" for p in i["content"]]
        items = [item for item in body["output"] if item["type"] == "function_call"]
        return {
            "text": "".join(texts),
            "calls": [item["name"] for item in items],
            "ids": [item["call_id"] for item in items],
            "finish": body["status"],
        }
    texts = [block["text"] for block in body["content"] if block["type"] == "text"]
    blocks = [block for block in body["content"] if block["type"] == "tool_use"]
    return {
        "text": "".join(texts),
        "calls": [block["name"] for block in blocks],
        "ids": [block["id"] for block in blocks],
        "finish": body["stop_reason"],
    }


REQUIRED = {"chat": "required", "responses": "required", "messages": {"type": "any"}}
NAMED = {
    "chat": {"type": "function", "function": {"name": "second"}},
    "responses": {"type": "function", "name": "second"},
    "messages": {"type": "tool", "name": "second", "disable_parallel_tool_use": True},
}
NONE = {"chat": "none", "responses": "none", "messages": {"type": "none"}}
FINISHED = {"chat": "tool_calls", "responses": "completed", "messages": "tool_use"}
CUT = {"chat": "length", "responses": "incomplete", "messages": "max_tokens"}


@pytest.mark.parametrize("protocol", REQUIRED)
def test_required_gets_a_call_and_no_prose(talker, protocol):
    answer = ask(talker, protocol, choice=REQUIRED[protocol])
    assert answer["text"] == ""
    assert answer["calls"]
    assert answer["finish"] in (FINISHED[protocol], CUT[protocol])


@pytest.mark.parametrize("protocol", NAMED)
def test_named_gets_exactly_one_call_of_that_tool(talker, caller, protocol):
    for url in (talker, caller):
        answer = ask(url, protocol, choice=NAMED[protocol])
        assert answer["calls"] == ["second"]
        assert answer["text"] == ""
        assert answer["finish"] == FINISHED[protocol]


@pytest.mark.parametrize("protocol", NONE)
def test_none_cannot_write_a_call(caller, protocol):
    answer = ask(caller, protocol, choice=NONE[protocol], limit=60)
    assert answer["calls"] == []
    assert "<tool_call>" not in answer["text"]


@pytest.mark.parametrize("protocol", FINISHED)
def test_two_calls_arrive_as_two(caller, protocol):
    answer = ask(caller, protocol)
    assert answer["calls"] == ["first", "second"]
    assert answer["finish"] == FINISHED[protocol]


@pytest.mark.parametrize("protocol", CUT)
def test_a_call_that_a_limit_cuts_off_is_not_published(caller, protocol):
    whole = len(CALL.format("first"))
    cut = ask(caller, protocol, limit=whole - 5)
    assert cut["calls"] == []
    assert cut["finish"] == CUT[protocol]
    kept = ask(caller, protocol, limit=whole + 20)
    assert kept["calls"] == ["first"]
    assert kept["finish"] == CUT[protocol]


def test_a_cut_call_does_not_spoil_the_next_turn(caller):
    tools = [{"type": "function", "name": "first", "parameters": PARAMETERS, "strict": True}]
    body = {"model": MODEL_ID, "input": "x", "tools": tools, "temperature": 0}
    first = httpx.post(f"{caller}/v1/responses", json=body | {"max_output_tokens": 30}).json()
    assert first["status"] == "incomplete"
    assert all(item["type"] != "function_call" for item in first["output"])
    follow = {"previous_response_id": first["id"], "input": "Go on.", "max_output_tokens": 5}
    second = httpx.post(f"{caller}/v1/responses", json=body | follow)
    assert second.status_code == 200


@pytest.mark.parametrize("protocol", REQUIRED)
def test_no_call_of_a_later_server_has_an_earlier_ones_id(protocol):
    ids = []
    for _ in range(2):
        with calling_server() as url:
            ids += ask(url, protocol)["ids"]
    assert len(set(ids)) == len(ids) == 4
