"""Anthropic Messages over loopback, with the official client and with raw bytes."""

import json

import anthropic
import httpx
import pytest

from support.answering import THINKING_TEMPLATE
from support.serving import scripted_server

SCRIPT = "Die Größe von 上海 is large."
THOUGHT = "Let me see."


@pytest.fixture(scope="module")
def url():
    with scripted_server(SCRIPT) as address:
        yield address


@pytest.fixture(scope="module")
def thinking_url():
    script = f"{THOUGHT}\n</think>\n\n{SCRIPT}"
    with scripted_server(script, template=THINKING_TEMPLATE) as address:
        yield address


@pytest.fixture(scope="module")
def client(url):
    with anthropic.Anthropic(base_url=url, api_key="none", max_retries=0) as client:
        yield client


def fields(**options) -> dict:
    messages = [{"role": "user", "content": "Well?"}]
    return {"model": "any-label", "messages": messages, "max_tokens": 300} | options


def post(url: str, **options) -> httpx.Response:
    return httpx.post(f"{url}/v1/messages", json=fields(**{"temperature": 0} | options))


def events_of(reply: httpx.Response) -> list[tuple[str, dict]]:
    found = []
    for block in reply.text.strip().split("\n\n"):
        if block.startswith(":"):
            continue
        name, data = block.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def test_a_free_answer_comes_back_whole(client):
    message = client.messages.create(**fields(), extra_body={"temperature": 0})
    assert [block.type for block in message.content] == ["text"]
    assert message.content[0].text == SCRIPT
    assert message.stop_reason == "end_turn"
    assert message.model == "any-label"
    assert message.role == "assistant"
    read = message.usage.cache_read_input_tokens
    assert message.usage.input_tokens + read > 0
    assert message.usage.output_tokens == len(SCRIPT.encode()) + 1


def test_system_and_history_reach_the_prompt(client):
    history = [
        {"role": "user", "content": [{"type": "text", "text": "One."}]},
        {"role": "assistant", "content": "Two."},
        {"role": "user", "content": "Three."},
    ]
    system = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    counted = client.messages.count_tokens(model="x", messages=history, system=system)
    plain = client.messages.count_tokens(model="x", messages=history)
    assert counted.input_tokens - plain.input_tokens >= len("system\nBe brief.")


def test_a_schema_is_enforced_as_the_caller_wrote_it(url):
    schema = {
        "type": "object",
        "properties": {
            "items": {
                "type": "array",
                "minItems": 2,
                "maxItems": 2,
                "items": {"type": "string", "minLength": 1, "maxLength": 2},
            },
            "count": {"type": "integer", "minimum": 0, "maximum": 10},
        },
        "required": ["items", "count"],
        "additionalProperties": False,
    }
    reply = post(url, output_config={"format": {"type": "json_schema", "schema": schema}})
    assert reply.status_code == 200, reply.text
    body = reply.json()
    answer = json.loads(body["content"][0]["text"])
    assert len(answer["items"]) == 2
    assert all(answer["items"])
    assert 0 <= answer["count"] <= 10
    assert body["constraint"]["terminated"] is True


def test_a_stream_is_the_clients_own_message(client):
    with client.messages.stream(**fields(), extra_body={"temperature": 0}) as stream:
        text = "".join(stream.text_stream)
        message = stream.get_final_message()
    assert text == SCRIPT
    assert message.content[0].text == SCRIPT
    assert message.stop_reason == "end_turn"
    assert message.usage.output_tokens == len(SCRIPT.encode()) + 1


def test_the_events_of_a_stream_come_in_the_protocols_order(url):
    reply = post(url, stream=True, structured_outputs={"choice": ["ab"]})
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert reply.headers["request-id"].startswith("req_")
    events = events_of(reply)
    assert [name for name, _ in events] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert all(data["type"] == name for name, data in events)
    assert events[0][1]["message"]["stop_reason"] is None
    assert events[-2][1]["delta"] == {"stop_reason": "end_turn", "stop_sequence": None}
    assert events[-2][1]["constraint"]["terminated"] is True


def test_thinking_is_a_block_of_its_own(thinking_url):
    body = post(thinking_url).json()
    assert [block["type"] for block in body["content"]] == ["thinking", "text"]
    assert body["content"][0]["thinking"].strip() == THOUGHT
    assert body["content"][0]["signature"]
    assert body["content"][1]["text"] == SCRIPT


def test_streamed_thinking_gives_the_same_blocks(thinking_url):
    whole = post(thinking_url).json()["content"]
    with anthropic.Anthropic(base_url=thinking_url, api_key="none") as client:
        with client.messages.stream(**fields(), extra_body={"temperature": 0}) as stream:
            message = stream.get_final_message()
    assert [block.model_dump(exclude_none=True) for block in message.content] == whole


def test_disabled_thinking_answers_directly(thinking_url):
    body = post(thinking_url, thinking={"type": "disabled"}, structured_outputs={"regex": "ok"})
    assert [block["type"] for block in body.json()["content"]] == ["text"]


def test_a_final_assistant_message_is_continued(url):
    messages = [
        {"role": "user", "content": "Which?"},
        {"role": "assistant", "content": "fo"},
    ]
    body = post(url, messages=messages, structured_outputs={"choice": ["foot", "food"]}).json()
    assert body["content"][0]["text"] in ("ot", "od")
    assert body["constraint"]["terminated"] is True


def test_many_stop_sequences_are_looked_for(url):
    texts = [f"z{n}" for n in range(127)] + [SCRIPT[3:6]]
    body = post(url, stop_sequences=texts, max_tokens=100).json()
    assert body["stop_sequence"] == SCRIPT[3:6]


def test_a_stop_sequence_is_named(url):
    body = post(url, stop_sequences=["上"]).json()
    assert body["stop_reason"] == "stop_sequence"
    assert body["stop_sequence"] == "上"
    assert body["content"][0]["text"] == "Die Größe von "


def test_the_length_limit_is_named(url):
    body = post(url, max_tokens=3).json()
    assert body["stop_reason"] == "max_tokens"
    assert body["usage"]["output_tokens"] == 3


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"model": ""}, "model"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]},
            "messages[0].content[0].type",
        ),
        ({"output_config": {"format": {"type": "json_object"}}}, "output_config.format.type"),
        ({"output_config": {"format": {"type": "json_schema"}}}, "output_config.format.schema"),
        ({"thinking": {"type": "enabled", "budget_tokens": 5}}, "thinking.budget_tokens"),
        ({"thinking": {"type": "sometimes"}}, "thinking.type"),
        ({"structured_outputs": {"regexp": "a"}}, "structured_outputs.regexp"),
        ({"structured_outputs": {"regex": "a(?=b)"}}, "structured_outputs.regex"),
        ({"stop_sequences": [""]}, "stop_sequences[0]"),
        ({"stop_sequences": [f"z{n}" for n in range(129)]}, "stop_sequences: 129 are given, 128"),
        ({"tool_choice": {"type": "tool"}}, "tool_choice.type"),
        (
            {
                "output_config": {
                    "format": {
                        "type": "json_schema",
                        "schema": {"properties": {"a": {"type": "text"}}},
                    }
                }
            },
            "output_config.format.schema/properties/a/type",
        ),
    ],
)
def test_bad_input_names_its_place_in_the_message(url, options, place):
    reply = post(url, **options)
    assert reply.status_code == 400
    body = reply.json()
    assert body["type"] == "error"
    assert body["error"]["type"] == "invalid_request_error"
    assert place in body["error"]["message"]
    assert body["request_id"] == reply.headers["request-id"]


def test_the_client_raises_its_own_error(client):
    with pytest.raises(anthropic.BadRequestError):
        client.messages.create(**fields(max_tokens=0))


def test_counting_compiles_nothing(url):
    body = fields(structured_outputs={"regex": "(((("})
    reply = httpx.post(f"{url}/v1/messages/count_tokens", json=body)
    assert reply.status_code == 200
    assert reply.json()["input_tokens"] > 0
