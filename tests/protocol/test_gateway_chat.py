"""Chat Completions over loopback, with the official client and with raw bytes."""

import json
from typing import Literal

import httpx
import openai
import pydantic
import pytest

from support.serving import MODEL_ID, scripted_server

SCRIPT = "Die Größe von 上海 is large."


@pytest.fixture(scope="module")
def url():
    with scripted_server(SCRIPT) as address:
        yield address


@pytest.fixture(scope="module")
def client(url):
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        yield client


def ask(client, text: str = "Well?", **options):
    options = {"temperature": 0} | options
    messages = [{"role": "user", "content": text}]
    return client.chat.completions.create(model=MODEL_ID, messages=messages, **options)


def structured(**kinds) -> dict:
    return {"extra_body": {"structured_outputs": kinds}}


def post(url: str, **fields) -> httpx.Response:
    body = {"model": MODEL_ID, "messages": [{"role": "user", "content": "x"}]} | fields
    return httpx.post(f"{url}/v1/chat/completions", json=body)


def test_a_free_answer_comes_back_whole(client):
    reply = ask(client)
    choice = reply.choices[0]
    assert choice.message.content == SCRIPT
    assert choice.message.role == "assistant"
    assert choice.finish_reason == "stop"
    assert reply.object == "chat.completion"
    assert reply.model == MODEL_ID
    assert reply.usage.completion_tokens == len(SCRIPT.encode()) + 1
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens
    assert "constraint" not in reply.model_extra


@pytest.mark.parametrize(
    ("kinds", "answers"),
    [
        ({"choice": ["yes", "no"]}, {"yes", "no"}),
        ({"regex": "a{3}"}, {"aaa"}),
        ({"grammar": 'root ::= "x" | "y"'}, {"x", "y"}),
    ],
)
def test_a_structured_answer_says_what_was_enforced(client, kinds, answers):
    reply = ask(client, **structured(**kinds))
    assert reply.choices[0].message.content in answers
    report = reply.model_extra["constraint"]
    assert report["branch"] == "content"
    assert report["complete"] is report["terminated"] is True
    assert report["cache"] in ("built", "hit", "waited")
    assert report["mask_positions"] > 0


def test_a_schema_keeps_the_order_of_its_source(client):
    schema = {
        "type": "object",
        "properties": {"reasoning": {"enum": ["r"]}, "answer": {"enum": ["a"]}},
        "required": ["answer", "reasoning"],
        "additionalProperties": False,
    }
    reply = ask(
        client,
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
    )
    assert reply.choices[0].message.content == '{"reasoning":"r","answer":"a"}'


class Weather(pydantic.BaseModel):
    city: str = pydantic.Field(max_length=8)
    degrees: int = pydantic.Field(ge=-40, le=50)
    kind: Literal["sun", "rain"]


def test_the_clients_own_parser_gets_its_type_back(client):
    messages = [{"role": "user", "content": "Weather?"}]
    reply = client.chat.completions.parse(
        model=MODEL_ID, messages=messages, response_format=Weather, seed=3
    )
    weather = reply.choices[0].message.parsed
    assert isinstance(weather, Weather)
    assert reply.model_extra["constraint"]["terminated"] is True


def test_json_object_answers_an_object(client):
    reply = ask(client, response_format={"type": "json_object"}, max_tokens=400)
    if reply.choices[0].finish_reason == "stop":
        assert isinstance(json.loads(reply.choices[0].message.content), dict)
    else:
        assert reply.choices[0].message.content.startswith("{")


def test_a_stream_carries_the_same_answer(client):
    chunks = list(ask(client, stream=True, stream_options={"include_usage": True}))
    assert chunks[0].choices[0].delta.role == "assistant"
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == SCRIPT
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == len(SCRIPT.encode()) + 1
    assert len({chunk.id for chunk in chunks}) == 1


def test_the_bytes_of_a_stream_are_whole_events_up_to_done(url):
    reply = post(url, stream=True, temperature=0, structured_outputs={"choice": ["ab"]})
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert reply.headers["x-request-id"].startswith("req_")
    events = reply.text.split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    records = [json.loads(event.removeprefix("data: ")) for event in events[:-2]]
    assert [r["choices"][0]["delta"].get("content") for r in records] == ["", "a", "b", None]
    assert records[-1]["choices"][0]["finish_reason"] == "stop"
    assert records[-1]["constraint"]["terminated"] is True
    assert all("constraint" not in record for record in records[:-1])


def test_every_event_is_one_line_wherever_a_client_splits_text(url):
    answer = "a\u2028b\u2029c\x85d\ne\x0bf\x1cg"
    body = {
        "model": MODEL_ID,
        "messages": [{"role": "user", "content": "x"}],
        "structured_outputs": {"choice": [answer]},
        "stream": True,
    }
    reply = httpx.post(f"{url}/v1/chat/completions", json=body)
    lines = [line for line in reply.text.splitlines() if line]
    assert lines.pop() == "data: [DONE]"
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines]
    said = [chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks]
    assert "".join(said) == answer


def test_progress_of_a_long_prompt_is_told_on_request(url):
    message = {"role": "user", "content": "x" * 1200}
    fields = {"messages": [message], "stream": True, "max_tokens": 2, "temperature": 0}
    lines = post(url, return_progress=True, **fields).text.splitlines()
    records = [json.loads(line.removeprefix("data: ")) for line in lines if '{"' in line]
    steps = [r["prompt_progress"] for r in records if "prompt_progress" in r]
    assert [step["processed"] for step in steps] == sorted(step["processed"] for step in steps)
    assert len(steps) >= 3
    assert steps[-1]["processed"] == steps[-1]["total"] > 1200
    assert "prompt_progress" not in post(url, **fields).text


def test_speeds_stand_beside_every_text_on_request(url):
    fields = {"stream": True, "max_tokens": 4, "temperature": 0}
    lines = post(url, timings_per_token=True, **fields).text.splitlines()
    records = [json.loads(line.removeprefix("data: ")) for line in lines if '{"' in line]
    texts = [r for r in records if r["choices"][0]["delta"].get("content")]
    assert [r["timings"]["predicted_n"] for r in texts] == [1, 2, 3, 4]
    spent = [r["timings"]["predicted_ms"] for r in texts]
    assert spent == sorted(spent)
    assert spent[0] == 0
    assert texts[0]["timings"]["prompt_n"] + texts[0]["timings"]["cache_n"] > 0
    final = records[-1]["timings"]
    assert final.keys() == texts[0]["timings"].keys()
    assert final["predicted_ms"] == spent[-1]
    assert post(url, **fields).text.count('"timings"') == 1


def test_the_length_limit_is_reported(client):
    reply = ask(client, max_completion_tokens=3)
    assert reply.choices[0].finish_reason == "length"
    assert reply.usage.completion_tokens == 3


def test_zero_tokens_process_the_prompt_only(client):
    reply = ask(client, max_tokens=0)
    assert reply.choices[0].message.content == ""
    assert reply.usage.completion_tokens == 0
    assert reply.usage.prompt_tokens > 0


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"response_format": {"type": "json_shema"}}, "response_format.type"),
        ({"structured_outputs": {"regexp": "a"}}, "structured_outputs.regexp"),
        ({"structured_outputs": {}}, "structured_outputs"),
        ({"structured_outputs": {"regex": "a", "choice": ["a"]}}, "structured_outputs"),
        (
            {"response_format": {"type": "json_object"}, "structured_outputs": {"regex": "a"}},
            "structured_outputs",
        ),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        ({"structured_outputs": {"regex": "(?=a)"}}, "structured_outputs.regex"),
        ({"structured_outputs": {"choice": []}}, "structured_outputs.choice"),
        ({"structured_outputs": {"grammar": "root ::= "}}, "structured_outputs.grammar"),
        ({"temperature": 3}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"top_k": 21}, "top_k"),
        ({"n": 2}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"stop": ["a", "b", "c", "d", "e"]}, "stop"),
        ({"stop": ["a", ""]}, "stop[1]"),
        ({"stop": "x", "structured_outputs": {"regex": "a"}}, "stop"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            "messages[0].content[0].type",
        ),
        ({"messages": []}, "messages"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"reasoning_effort": "enormous"}, "reasoning_effort"),
    ],
)
def test_bad_input_is_a_400_that_names_the_field(url, fields, param):
    reply = post(url, **fields)
    assert reply.status_code == 400
    error = reply.json()["error"]
    assert error["param"] == param
    assert error["type"] == "invalid_request_error"
    assert error["message"]


def test_a_schema_error_points_into_the_callers_own_field(url):
    schema = {"type": "object", "properties": {"a": {"type": "text"}}}
    reply = post(
        url,
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
    )
    assert reply.status_code == 400
    error = reply.json()["error"]
    assert error["code"] == "invalid_json_schema"
    assert error["param"] == "response_format.json_schema.schema/properties/a/type"


def test_another_model_is_a_404(url):
    reply = post(url, model="gpt-x")
    assert reply.status_code == 404
    assert reply.json()["error"]["code"] == "model_not_found"


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b'{"model":"scripted"}']
)
def test_a_broken_body_is_a_400(url, body):
    reply = httpx.post(f"{url}/v1/chat/completions", content=body)
    assert reply.status_code == 400
    assert reply.json()["error"]["type"] == "invalid_request_error"


def test_a_prompt_that_does_not_fit_is_refused(url):
    reply = post(url, messages=[{"role": "user", "content": "x" * 5000}])
    assert reply.status_code == 400
    assert reply.json()["error"]["code"] == "context_length_exceeded"


def test_models_and_health_say_what_is_served(client, url):
    assert [model.id for model in client.models.list()] == [MODEL_ID]
    assert client.models.retrieve(MODEL_ID).owned_by == "ninfer"
    assert httpx.get(f"{url}/health").json() == {"status": "ok"}


def test_unknown_paths_are_404_in_the_protocols_own_shape(url):
    reply = httpx.get(f"{url}/v1/nothing")
    assert reply.status_code == 404
    assert reply.json()["error"]["type"] == "not_found_error"
