"""OpenAI Responses over loopback, with the official client and with raw bytes."""

import json

import httpx
import openai
import pytest

from ninfer.gateway.options import ServerOptions
from support.answering import THINKING_TEMPLATE, scripted_engine
from support.serving import MODEL_ID, scripted_server, serving

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
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        yield client


def post(url: str, **fields) -> httpx.Response:
    body = {"model": MODEL_ID, "input": "Well?", "temperature": 0} | fields
    return httpx.post(f"{url}/v1/responses", json=body)


def events_of(reply: httpx.Response) -> list[dict]:
    blocks = [block.split("\n") for block in reply.text.strip().split("\n\n")]
    events = [json.loads(data.removeprefix("data: ")) for _, data in blocks]
    names = [name.removeprefix("event: ") for name, _ in blocks]
    assert names == [event["type"] for event in events]
    return events


def test_a_free_answer_comes_back_whole(client):
    response = client.responses.create(model=MODEL_ID, input="Well?", temperature=0)
    assert response.output_text == SCRIPT
    assert response.status == "completed"
    assert [item.type for item in response.output] == ["message"]
    assert response.usage.output_tokens == len(SCRIPT.encode()) + 1
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens


def test_a_text_format_is_enforced_in_source_order(client):
    schema = {
        "type": "object",
        "properties": {"z": {"enum": ["last"]}, "a": {"type": "boolean"}},
        "required": ["a", "z"],
        "additionalProperties": False,
    }
    response = client.responses.create(
        model=MODEL_ID,
        input="Well?",
        text={"format": {"type": "json_schema", "name": "x", "schema": schema, "strict": True}},
    )
    assert list(json.loads(response.output_text)) == ["z", "a"]
    assert response.model_extra["constraint"]["terminated"] is True


def test_structured_outputs_are_enforced(url):
    body = post(url, structured_outputs={"regex": "[xy]{2}"}).json()
    assert body["output"][0]["content"][0]["text"] in ("xx", "xy", "yx", "yy")
    assert body["constraint"]["complete"] is True


def test_a_stream_ends_with_the_aggregate(client):
    with client.responses.stream(model=MODEL_ID, input="Well?", temperature=0) as stream:
        events = list(stream)
        final = stream.get_final_response()
    text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    assert text == final.output_text == SCRIPT


def test_events_are_numbered_and_in_order(url):
    events = events_of(post(url, stream=True, structured_outputs={"choice": ["ab"]}))
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["type"].removeprefix("response.") for event in events] == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    final = events[-1]["response"]
    assert final["output"] == [events[-2]["item"]]
    assert final["constraint"]["terminated"] is True
    assert final["id"] == events[0]["response"]["id"]


def test_thinking_is_an_item_of_its_own_streamed_or_not(thinking_url):
    whole = post(thinking_url).json()["output"]
    assert [item["type"] for item in whole] == ["reasoning", "message"]
    assert whole[0]["content"][0]["text"].strip() == THOUGHT
    assert whole[1]["content"][0]["text"] == SCRIPT
    events = events_of(post(thinking_url, stream=True))
    final = events[-1]["response"]["output"]
    done = [e["item"] for e in events if e["type"] == "response.output_item.done"]
    assert final == done
    assert [item["content"] for item in final] == [item["content"] for item in whole]


def test_the_length_limit_makes_it_incomplete(url):
    body = post(url, max_output_tokens=3).json()
    assert body["status"] == "incomplete"
    assert body["incomplete_details"] == {"reason": "max_output_tokens"}
    events = events_of(post(url, max_output_tokens=3, stream=True))
    assert events[-1]["type"] == "response.incomplete"
    assert events[-2]["item"]["status"] == "incomplete"


def test_a_stored_response_can_be_gone_on_from(client):
    first = client.responses.create(model=MODEL_ID, input="One.", instructions="Be brief.")
    second = client.responses.create(
        model=MODEL_ID, input="Two.", previous_response_id=first.id, store=False
    )
    # One byte or mark is one token of this model; S and E stand for its two marks.
    before = "Ssystem\nBe brief.E\nSuser\nOne.E\nSassistant\n"
    after = f"Suser\nOne.E\nSassistant\n{first.output_text}E\nSuser\nTwo.E\nSassistant\n"
    assert first.usage.input_tokens == len(before.encode())
    assert second.usage.input_tokens == len(after.encode())
    assert client.responses.retrieve(first.id).output_text == first.output_text
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(second.id)


def test_input_items_are_listed_in_pages(url):
    items = [{"role": "user", "content": f"{n}"} for n in range(5)]
    identity = post(url, input=items).json()["id"]
    path = f"{url}/v1/responses/{identity}/input_items"
    first = httpx.get(path, params={"limit": 3, "order": "asc"}).json()
    assert [item["content"] for item in first["data"]] == ["0", "1", "2"]
    assert first["has_more"] is True
    rest = httpx.get(path, params={"after": first["last_id"], "order": "asc"}).json()
    assert [item["content"] for item in rest["data"]] == ["3", "4"]
    assert rest["has_more"] is False
    newest = httpx.get(path).json()["data"][0]
    assert newest["content"] == "4"
    assert httpx.get(path, params={"limit": 0}).json()["error"]["param"] == "limit"


def test_a_deleted_response_is_gone(client):
    response = client.responses.create(model=MODEL_ID, input="x")
    client.responses.delete(response.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(response.id)


def test_the_store_lets_go_of_the_oldest():
    options = ServerOptions(port=0, model_id=MODEL_ID, stored_responses=2)
    with scripted_engine("hi") as engine, serving(engine, options) as url:
        ids = [post(url).json()["id"] for _ in range(3)]
        found = [httpx.get(f"{url}/v1/responses/{identity}").status_code for identity in ids]
    assert found == [404, 200, 200]


@pytest.mark.parametrize("verb", ["cancel", "compact"])
def test_background_verbs_are_refused_clearly(url, verb):
    identity = post(url).json()["id"]
    reply = httpx.post(f"{url}/v1/responses/{identity}/{verb}")
    assert reply.status_code == 400
    assert reply.json()["error"]["code"] == f"{verb}_not_supported"


def test_tokens_are_counted_without_compiling(url):
    body = {"model": MODEL_ID, "input": "Well?", "structured_outputs": {"regex": "(("}}
    reply = httpx.post(f"{url}/v1/responses/input_tokens", json=body)
    assert reply.status_code == 200
    assert reply.json()["input_tokens"] == post(url).json()["usage"]["input_tokens"]


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"frobnicate": 1}, "frobnicate", "unknown_parameter"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type", "invalid_value"),
        ({"text": {"format": {"type": "json_schema"}}}, "text.format.schema", "missing_field"),
        (
            {"text": {"format": {"type": "json_object"}}, "structured_outputs": {"regex": "a"}},
            "structured_outputs",
            "conflicting_options",
        ),
        ({"structured_outputs": {"regex": "("}}, "structured_outputs.regex", "invalid_regex"),
        ({"background": True}, "background", "background_not_supported"),
        ({"previous_response_id": "resp_x"}, "previous_response_id", "response_not_found"),
        ({"input": [{"type": "web_search_call"}]}, "input[0].type", "unsupported_content"),
        ({"input": [{"role": "robot", "content": "x"}]}, "input[0].role", "invalid_value"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
            "input[0].content[0].type",
            "unsupported_content",
        ),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type", "tool_type_not_supported"),
        ({"temperature": 2.5}, "temperature", "invalid_option"),
        (
            {
                "text": {
                    "format": {"type": "json_schema", "schema": {"properties": {"a": {"type": 1}}}}
                }
            },
            "text.format.schema/properties/a/type",
            "invalid_json_schema",
        ),
    ],
)
def test_bad_input_is_a_400_that_names_the_field(url, fields, param, code):
    reply = post(url, **fields)
    assert reply.status_code == 400
    error = reply.json()["error"]
    assert (error["param"], error["code"]) == (param, code)
