"""Tools by three protocols: calls, policies, results in the history, and refusals with places."""

import json

import anthropic
import httpx
import openai
import pytest

from support.serving import MODEL_ID, scripted_server

PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
CALL = (
    "<tool_call>\n<function=lookup>\n<parameter=city>\n上海 \n</parameter>\n"
    "<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>"
)
ARGUMENTS = {"city": "上海 ", "days": 3}


def script(conversation: str) -> str:
    if "<tool_response>" in conversation:
        return "It rains."
    return CALL.replace("lookup", "w__lookup") if "w__lookup" in conversation else CALL


@pytest.fixture(scope="module")
def url():
    with scripted_server(script) as address:
        yield address


@pytest.fixture(scope="module")
def client(url):
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        yield client


def function(name: str = "lookup", **changes) -> dict:
    return {"name": name, "parameters": PARAMETERS, "strict": True} | changes


def chat_fields(**changes) -> dict:
    return {
        "model": MODEL_ID,
        "messages": [{"role": "user", "content": "Weather?"}],
        "tools": [{"type": "function", "function": function()}],
        "temperature": 0,
    } | changes


def message_fields(**changes) -> dict:
    tool = {"name": "lookup", "input_schema": PARAMETERS, "strict": True}
    return {
        "model": MODEL_ID,
        "max_tokens": 400,
        "messages": [{"role": "user", "content": "Weather?"}],
        "tools": [tool],
        "temperature": 0,
    } | changes


def response_fields(**changes) -> dict:
    return {
        "model": MODEL_ID,
        "input": "Weather?",
        "tools": [{"type": "function", **function()}],
        "temperature": 0,
    } | changes


def test_chat_returns_a_structured_call(client):
    reply = client.chat.completions.create(**chat_fields())
    choice = reply.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    (call,) = choice.message.tool_calls
    assert call.function.name == "lookup"
    assert json.loads(call.function.arguments) == ARGUMENTS
    assert reply.model_extra["constraint"]["branch"] == "tools"


def test_chat_streams_the_same_call(client):
    chunks = list(client.chat.completions.create(**chat_fields(stream=True)))
    calls = [c for chunk in chunks for c in chunk.choices[0].delta.tool_calls or []]
    assert [call.index for call in calls] == [0]
    assert calls[0].function.name == "lookup"
    assert json.loads(calls[0].function.arguments) == ARGUMENTS
    assert chunks[-1].choices[0].finish_reason == "tool_calls"
    assert not any(chunk.choices[0].delta.content for chunk in chunks)


def test_a_chat_result_goes_back_into_the_conversation(client):
    first = client.chat.completions.create(**chat_fields()).choices[0].message
    history = [
        {"role": "user", "content": "Weather?"},
        first.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "rain"},
    ]
    reply = client.chat.completions.create(**chat_fields(messages=history))
    assert reply.choices[0].message.content == "It rains."


@pytest.mark.parametrize(
    "choice",
    [
        "required",
        {"type": "function", "function": {"name": "lookup"}},
        {
            "type": "allowed_tools",
            "allowed_tools": {
                "mode": "required",
                "tools": [{"type": "function", "function": {"name": "lookup"}}],
            },
        },
    ],
)
def test_chat_policies_that_require_a_call_get_one(client, choice):
    tools = [{"type": "function", "function": function(name)} for name in ("other", "lookup")]
    reply = client.chat.completions.create(**chat_fields(tools=tools, tool_choice=choice))
    assert [c.function.name for c in reply.choices[0].message.tool_calls] == ["lookup"]


def test_chat_none_forbids_the_call(client):
    reply = client.chat.completions.create(
        **chat_fields(tool_choice="none", extra_body={"structured_outputs": {"choice": ["no"]}})
    )
    assert reply.choices[0].message.content == "no"
    assert reply.choices[0].message.tool_calls is None


def test_responses_return_and_stream_the_same_call(client):
    response = client.responses.create(**response_fields())
    (item,) = response.output
    assert item.type == "function_call"
    assert item.name == "lookup"
    assert json.loads(item.arguments) == ARGUMENTS
    with client.responses.stream(**response_fields()) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert json.loads(final.output[0].arguments) == ARGUMENTS
    done = [e for e in events if e.type == "response.function_call_arguments.done"]
    assert [json.loads(event.arguments) for event in done] == [ARGUMENTS]


def test_a_response_goes_on_after_its_call(client):
    first = client.responses.create(**response_fields())
    output = {
        "type": "function_call_output",
        "call_id": first.output[0].call_id,
        "output": "rain",
    }
    second = client.responses.create(
        **response_fields(previous_response_id=first.id, input=[output])
    )
    assert second.output_text == "It rains."


def test_a_namespaced_function_keeps_its_namespace(url):
    tools = [{"type": "namespace", "name": "w", "tools": [{"type": "function", **function()}]}]
    choice = {"type": "function", "namespace": "w", "name": "lookup"}
    body = httpx.post(
        f"{url}/v1/responses",
        json=response_fields(tools=tools, tool_choice=choice, max_output_tokens=600),
    ).json()
    calls = [item for item in body["output"] if item["type"] == "function_call"]
    assert [(call["namespace"], call["name"]) for call in calls] == [("w", "lookup")]


def test_messages_return_and_stream_the_same_call(url):
    whole = httpx.post(f"{url}/v1/messages", json=message_fields()).json()
    (block,) = whole["content"]
    assert block["type"] == "tool_use"
    assert block["name"] == "lookup"
    assert block["input"] == ARGUMENTS
    assert whole["stop_reason"] == "tool_use"
    fields = message_fields()
    del fields["temperature"]
    with anthropic.Anthropic(base_url=url, api_key="none") as client:
        with client.messages.stream(**fields, extra_body={"temperature": 0}) as stream:
            message = stream.get_final_message()
    assert message.content[0].input == ARGUMENTS
    assert message.stop_reason == "tool_use"


def test_a_tool_result_goes_back_into_the_messages(url):
    first = httpx.post(f"{url}/v1/messages", json=message_fields()).json()
    identity = first["content"][0]["id"]
    result = {"type": "tool_result", "tool_use_id": identity, "content": "rain"}
    history = [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": first["content"]},
        {"role": "user", "content": [result]},
    ]
    body = httpx.post(f"{url}/v1/messages", json=message_fields(messages=history)).json()
    assert body["content"][0]["text"] == "It rains."


@pytest.mark.parametrize("kind", ["any", "tool"])
def test_messages_policies_that_require_a_call_get_one(url, kind):
    choice = {"type": kind} | ({"name": "lookup"} if kind == "tool" else {})
    body = httpx.post(f"{url}/v1/messages", json=message_fields(tool_choice=choice)).json()
    assert body["content"][-1]["name"] == "lookup"


BROKEN = {"type": "object", "properties": {"a": {"type": "text"}}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("path", "fields", "place"),
    [
        (
            "/v1/chat/completions",
            chat_fields(tools=[{"type": "function", "function": function(parameters=BROKEN)}]),
            "tools[0].function.parameters/properties/a/type",
        ),
        (
            "/v1/responses",
            response_fields(tools=[{"type": "function", **function(parameters=BROKEN)}]),
            "tools[0].parameters/properties/a/type",
        ),
        (
            "/v1/messages",
            message_fields(tools=[{"name": "x", "input_schema": BROKEN, "strict": True}]),
            "tools[0].input_schema/properties/a/type",
        ),
        (
            "/v1/chat/completions",
            chat_fields(tools=[{"type": "function", "function": function("a b")}]),
            "tools[0].function",
        ),
        (
            "/v1/chat/completions",
            chat_fields(tool_choice={"type": "function", "function": {"name": "nobody"}}),
            "tool_choice",
        ),
        ("/v1/chat/completions", chat_fields(tools=None, tool_choice="required"), "tool_choice"),
        ("/v1/chat/completions", chat_fields(tool_choice="perhaps"), "tool_choice"),
        (
            "/v1/chat/completions",
            chat_fields(structured_outputs={"regex": "a"}),
            "tools",
        ),
        ("/v1/chat/completions", chat_fields(tools=[{"type": "web"}]), "tools[0].type"),
    ],
)
def test_a_bad_tool_is_refused_with_its_place(url, path, fields, place):
    reply = httpx.post(url + path, json=fields)
    assert reply.status_code == 400
    error = reply.json()["error"]
    if path == "/v1/messages":
        assert place in error["message"]
    else:
        assert error["param"] == place
