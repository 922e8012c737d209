"""Bodies nobody would write: declared refusals only, and a server that is alive afterwards."""

import json
import os

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer.contract import EngineOptions
from support.answering import scripted_engine
from support.serving import MODEL_ID, serving

SCALE = 400 if os.environ.get("NINFER_SLOW") else 5
DECLARED = {200, 400, 404, 413, 429, 503, 504, 529}
PATHS = ("/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/messages/count_tokens")
NAMES = (
    "model messages input role content type text stream max_tokens max_output_tokens temperature "
    "top_p top_k seed stop stop_sequences tools tool_choice function name parameters input_schema "
    "response_format json_schema schema structured_outputs grammar regex choice thinking system "
    "output_config format strict reasoning effort arguments call_id output id properties enum"
).split()
WORDS = (
    *("user", "assistant", "system", "tool", "text", "function", "auto", "none", "required"),
    *("json_object", "json_schema", "object", "string", "enabled", "tool_use", "tool_result"),
    *("", "x", "上", "a" * 50, "root ::= [a-z]*", "(a|b)*", MODEL_ID),
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 30),
    st.floats(allow_nan=False, allow_infinity=False, width=16),
    st.sampled_from(WORDS),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    ),
    max_leaves=12,
)
BASES = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "x"}], "max_tokens": 8},
    "/v1/responses": {"input": "x", "max_output_tokens": 8},
    "/v1/messages": {"messages": [{"role": "user", "content": "x"}], "max_tokens": 8},
    "/v1/messages/count_tokens": {"messages": [{"role": "user", "content": "x"}]},
}


@pytest.fixture(scope="module")
def client():
    engine = scripted_engine("hello", EngineOptions(max_concurrency=4))
    with engine, serving(engine) as url, httpx.Client(base_url=url, timeout=20) as client:
        yield client


@settings(max_examples=20 * SCALE)
@given(
    path=st.sampled_from(PATHS),
    changes=st.dictionaries(st.sampled_from(NAMES), VALUES, min_size=1, max_size=4),
)
def test_strange_fields_are_served_or_refused(client, path, changes):
    reply = client.post(path, json={"model": MODEL_ID} | BASES[path] | changes)
    _require_declared(reply)


@settings(max_examples=5 * SCALE)
@given(path=st.sampled_from(PATHS), body=st.binary(max_size=60))
def test_bytes_that_are_no_request_are_refused(client, path, body):
    reply = client.post(path, content=body)
    _require_declared(reply)
    assert reply.status_code == 400


def test_the_server_is_alive_after_all_that(client):
    assert client.get("/health").status_code == 200
    body = {"model": MODEL_ID, "temperature": 0} | BASES["/v1/chat/completions"]
    reply = client.post("/v1/chat/completions", json=body)
    assert reply.json()["choices"][0]["message"]["content"] == "hello"


def _require_declared(reply: httpx.Response) -> None:
    assert reply.status_code in DECLARED, reply.text
    if reply.status_code != 200:
        assert reply.json()["error"]["message"]
    elif "event-stream" in reply.headers["content-type"]:
        events = [line for line in reply.text.splitlines() if line.startswith("data: {")]
        assert events
        assert all(json.loads(event.removeprefix("data: ")) for event in events)
