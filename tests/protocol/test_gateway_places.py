"""Every refusal names its place in the caller's own fields, whichever protocol and endpoint."""

import json

import httpx
import pytest

from support.serving import MODEL_ID, scripted_server

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
INPUT_TOKENS, COUNT_TOKENS = "/v1/responses/input_tokens", "/v1/messages/count_tokens"
ASKED = {"role": "user", "content": "x"}
BASES = {
    CHAT: {"model": MODEL_ID, "messages": [ASKED], "max_tokens": 2},
    RESPONSES: {"model": MODEL_ID, "input": "x", "max_output_tokens": 2},
    MESSAGES: {"model": "any", "messages": [ASKED], "max_tokens": 2},
    INPUT_TOKENS: {"model": MODEL_ID, "input": "x"},
    COUNT_TOKENS: {"model": "any", "messages": [ASKED]},
}
DEEP = '{"a":' * 3000 + "1" + "}" * 3000
INTERNAL_WORDS = ("prompt.", "execution.", "allowed_names", "_json:")


@pytest.fixture(scope="module")
def url():
    def script(conversation: str) -> str:
        return "seen" if "I refuse" in conversation else "unseen"

    with scripted_server(script, rows=2) as address:
        yield address


def post(url: str, path: str, **fields) -> httpx.Response:
    return httpx.post(url + path, json=BASES[path] | fields, timeout=20)


def chat_tool(name: str, **function) -> dict:
    return {"type": "function", "function": {"name": name} | function}


def tool(name: str) -> dict:
    return {"type": "function", "name": name}


def chat_call(arguments: str) -> dict:
    function = {"name": "f", "arguments": arguments}
    return {"role": "assistant", "tool_calls": [{"id": "1", "function": function}]}


def called(arguments: str) -> dict:
    return {"type": "function_call", "call_id": "1", "name": "f", "arguments": arguments}


def tool_use(**block) -> dict:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f"} | block]}


RESULT = {"type": "tool_result", "tool_use_id": "1", "content": "r"}
THOUGHT = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}]}
NAMESPACE = {"type": "namespace", "name": "n", "tools": [tool("a"), tool("a")]}
TWO = [{"name": "a"}, {"name": "a"}]
ALLOWED = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "x"}]}}

PLACES = [
    (CHAT, {"tools": [chat_tool("a"), chat_tool("a")]}, "tools[1].function"),
    (CHAT, {"tools": [chat_tool("b"), chat_tool("a"), chat_tool("a")]}, "tools[2].function"),
    (CHAT, {"tools": [chat_tool("b"), chat_tool("")]}, "tools[1].function"),
    (CHAT, {"tools": [{"type": "function"}]}, "tools[0].function"),
    (RESPONSES, {"tools": [tool("a"), tool("a")]}, "tools[1]"),
    (RESPONSES, {"tools": [tool("b"), NAMESPACE]}, "tools[1].tools[1]"),
    (INPUT_TOKENS, {"tools": [tool("a"), tool("a")]}, "tools[1]"),
    (RESPONSES, {"tools": [{"type": "function"}]}, "tools[0].name"),
    (MESSAGES, {"tools": TWO}, "tools[1]"),
    (COUNT_TOKENS, {"tools": TWO}, "tools[1]"),
    (
        CHAT,
        {"tools": [chat_tool("a")], "tool_choice": ALLOWED},
        "tool_choice.allowed_tools.tools[0].function",
    ),
    (
        RESPONSES,
        {
            "tools": [tool("a")],
            "tool_choice": {"type": "allowed_tools", "tools": [{"type": "function"}]},
        },
        "tool_choice.tools[0].name",
    ),
    (
        RESPONSES,
        {
            "tools": [tool("a")],
            "tool_choice": {"type": "allowed_tools", "tools": [{"type": "web_search"}]},
        },
        "tool_choice.tools[0].type",
    ),
    (CHAT, {"tool_choice": {"type": "function", "function": {"name": "g"}}}, "tool_choice"),
    *(
        (
            CHAT,
            {"messages": [ASKED, chat_call(text)]},
            "messages[1].tool_calls[0].function.arguments",
        )
        for text in ("", "[1]", "oops", '{"a":NaN}', DEEP)
    ),
    *(
        (
            RESPONSES,
            {"instructions": "i", "input": [ASKED, THOUGHT, called("{}"), called(text)]},
            "input[3].arguments",
        )
        for text in ("oops", DEEP)
    ),
    (INPUT_TOKENS, {"input": [ASKED, called("[]")]}, "input[1].arguments"),
    (
        MESSAGES,
        {"system": "s", "messages": [ASKED, tool_use(input="text"), ASKED]},
        "messages[1].content[0].input",
    ),
    (
        COUNT_TOKENS,
        {
            "system": "s",
            "messages": [
                ASKED,
                tool_use(input={}),
                {"role": "user", "content": [RESULT, RESULT]},
                tool_use(input=[]),
                ASKED,
            ],
        },
        "messages[3].content[0].input",
    ),
    (CHAT, {"messages": [{"role": "user"}]}, "messages[0].content"),
    (CHAT, {"messages": [ASKED, {"role": "assistant"}, ASKED]}, "messages[1].content"),
    (
        CHAT,
        {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
        "messages[0].content[0].text",
    ),
    (
        CHAT,
        {"messages": [ASKED, {"role": "assistant", "content": [{"type": "refusal"}]}, ASKED]},
        "messages[1].content[0].refusal",
    ),
    (
        CHAT,
        {"messages": [chat_call("{}") | ASKED]},
        "messages[0]",
    ),
    (RESPONSES, {"input": [{"role": "user"}]}, "input[0].content"),
    (
        RESPONSES,
        {"input": [{"role": "user", "content": [{"type": "input_text"}]}]},
        "input[0].content[0].text",
    ),
    (RESPONSES, {"input": [{"type": "function_call_output", "call_id": "1"}]}, "input[0].output"),
    (
        MESSAGES,
        {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
        "messages[0].content[0].text",
    ),
    (
        MESSAGES,
        {"messages": [ASKED, {"role": "assistant", "content": [{"type": "thinking"}]}, ASKED]},
        "messages[1].content[0].thinking",
    ),
    (MESSAGES, {"system": [{"type": "text"}]}, "system[0].text"),
    (
        MESSAGES,
        {"messages": [ASKED, {"role": "system", "content": [{"type": "image"}]}]},
        "messages[1].content[0].type",
    ),
    (CHAT, {"messages": []}, "messages"),
    (RESPONSES, {"input": []}, "input"),
    (MESSAGES, {"messages": []}, "messages"),
    (CHAT, {"messages": [{"role": "user", "content": "x" * 3000}]}, "messages"),
    (RESPONSES, {"input": "x" * 3000}, "input"),
    (MESSAGES, {"messages": [{"role": "user", "content": "x" * 3000}]}, "messages"),
    (CHAT, {"enable_thinking": True}, "enable_thinking"),
    (CHAT, {"thinking_budget": 5}, "thinking_budget"),
    (CHAT, {"chat_template_kwargs": []}, "chat_template_kwargs"),
    (INPUT_TOKENS, {"chat_template_kwargs": []}, "chat_template_kwargs"),
    (INPUT_TOKENS, {"reasoning": {"effort": "low"}}, "reasoning.effort"),
    (
        COUNT_TOKENS,
        {"thinking": {"type": "enabled", "budget_tokens": 2000}},
        "thinking.type",
    ),
    (COUNT_TOKENS, {"output_config": {"effort": "low"}}, "output_config.effort"),
    (COUNT_TOKENS, {"messages": [ASKED, tool_use(input={})]}, "messages"),
]


@pytest.mark.parametrize(("path", "fields", "place"), PLACES)
def test_a_refusal_names_the_callers_field(url, path, fields, place):
    reply = post(url, path, **fields)
    assert reply.status_code == 400, reply.text
    error = reply.json()["error"]
    assert error["message"].startswith(f"{place}: ")
    assert not any(word in error["message"] for word in INTERNAL_WORDS)
    if path not in (MESSAGES, COUNT_TOKENS):
        assert error["param"] == place
        assert error["code"]


def test_places_of_a_followed_response_count_from_the_new_input(url):
    first = post(url, RESPONSES).json()["id"]
    for item, place in (
        ({"role": "robot", "content": "x"}, "input[0].role"),
        (called("oops"), "input[0].arguments"),
    ):
        reply = post(url, RESPONSES, previous_response_id=first, input=[item])
        assert reply.json()["error"]["param"] == place


def test_a_refusal_in_the_history_is_read_where_it_is_written(url):
    part = {"type": "refusal", "refusal": "I refuse"}
    for said in ({"content": [part]}, {"content": None, "refusal": "I refuse"}):
        messages = [ASKED, {"role": "assistant"} | said, ASKED]
        reply = post(url, CHAT, messages=messages, max_tokens=9, temperature=0).json()
        assert reply["choices"][0]["message"]["content"] == "seen"
    items = [ASKED, {"role": "assistant", "content": [part]}, ASKED]
    reply = post(url, RESPONSES, input=items, max_output_tokens=9, temperature=0).json()
    assert reply["output"][0]["content"][0]["text"] == "seen"
    listed = httpx.get(f"{url}{RESPONSES}/{reply['id']}/input_items?order=asc").json()["data"]
    assert listed[1]["content"] == [part]


@pytest.mark.parametrize("path", list(BASES))
@pytest.mark.parametrize("where", ["unknown", "tools"])
def test_a_body_that_is_not_utf8_is_refused_wherever_the_bytes_are(url, path, where):
    body = json.dumps(BASES[path])[:-1].encode() + b', "%s": [{"a": "\xff"}]}' % where.encode()
    reply = httpx.post(url + path, content=body)
    assert reply.status_code == 400
    assert "not UTF-8" in reply.json()["error"]["message"]


def test_a_response_repeats_fields_as_they_were_sent(url):
    source = '{"format": {"type": "text"},\n  "big": [1e999, 1.50], "é": null}'
    body = f'{{"model": "{MODEL_ID}", "input": "x", "max_output_tokens": 1, "text": {source}}}'
    reply = httpx.post(url + RESPONSES, content=body.encode())
    assert reply.status_code == 200
    assert '"text":{"format":{"type":"text"},"big":[1e999,1.50],"é":null}' in reply.text
    streamed = httpx.post(url + RESPONSES, content=body[:-1].encode() + b', "stream": true}')
    lines = streamed.text.splitlines()
    assert all(not line or line.startswith(("event: ", "data: {")) for line in lines)
    assert sum('"big":[1e999,1.50]' in line for line in lines) == 3


@pytest.mark.parametrize("extra", [{}, {"structured_outputs": {"choice": ["a"]}}])
def test_an_answer_without_a_token_is_not_called_complete(url, extra):
    fields = {"max_output_tokens": 0} | extra
    whole = post(url, RESPONSES, **fields).json()
    assert whole["status"] == "incomplete"
    assert whole["incomplete_details"] == {"reason": "max_output_tokens"}
    streamed = post(url, RESPONSES, stream=True, **fields).text
    assert "event: response.incomplete" in streamed
    assert '"status":"completed"' not in streamed
