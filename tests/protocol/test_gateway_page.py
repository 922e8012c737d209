"""The page, the OpenAPI document, and the view of how free every token was."""

import json
import re
import shutil
import subprocess

import httpx
import jsonschema
import pytest

from support.serving import MODEL_ID, scripted_server


@pytest.fixture(scope="module")
def url():
    with scripted_server("free", rows=2) as address:
        yield address


@pytest.fixture(scope="module")
def script(url):
    (source,) = re.findall(r"<script>(.*)</script>", httpx.get(url).text, re.DOTALL)
    return source


def evaluate(script: str, expression: str):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    code = f"{script}\nconsole.log(JSON.stringify({expression}))"
    done = subprocess.run([node, "-e", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def ask(url: str, **fields) -> dict:
    body = {"model": MODEL_ID, "messages": [{"role": "user", "content": "x"}], "temperature": 0}
    return httpx.post(f"{url}/v1/chat/completions", json=body | fields).json()


def test_the_page_loads_nothing_from_anywhere(url):
    reply = httpx.get(url)
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    assert not re.search(r"""(src|href)\s*=|@import|url\(|https?://""", reply.text)


def test_the_page_sends_a_schema_as_it_was_typed(script):
    source = '{"type": "number", "minimum": 1.50, "z": 1, "a": 2}'
    form = {"kind": "json_schema", "source": source, "prompt": "x"}
    body = evaluate(script, f"requestBody('m', {json.dumps(form)})")
    assert source in body
    assert json.loads(body)["response_format"]["json_schema"]["schema"]["minimum"] == 1.5


@pytest.mark.parametrize(
    ("pointer", "marked"),
    [
        ("/properties/a/type", '"type": "text"'),
        ("/properties/a~1b", '"a/b": {}'),
        ("/required/1", '"x"'),
        ("", None),
    ],
)
def test_the_page_finds_the_place_of_a_pointer(script, pointer, marked):
    text = (
        '{"properties": {"a": {"x": [1, {"type": 2}], "type": "text"}, "a/b": {}},'
        ' "required": ["q", "x"]}'
    )
    place = evaluate(script, f"locatePointer({json.dumps(text)}, {json.dumps(pointer)})")
    if marked is None:
        assert place == [0, len(text)]
    else:
        assert text[place[0] : place[1]] == marked


@pytest.mark.parametrize(
    ("kind", "source", "fields", "marked"),
    [
        ("regex", "ab(?=c)", {"structured_outputs": {"regex": "ab(?=c)"}}, "("),
        (
            "grammar",
            'root ::= "a"\n  | missing',
            {"structured_outputs": {"grammar": 'root ::= "a"\n  | missing'}},
            "m",
        ),
        (
            "json_schema",
            '{"properties": {"a": {"type": "text"}}}',
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"schema": {"properties": {"a": {"type": "text"}}}},
                }
            },
            '"type": "text"',
        ),
    ],
)
def test_a_refusal_is_marked_where_it_lies(url, script, kind, source, fields, marked):
    error = json.dumps(ask(url, **fields)["error"])
    place = evaluate(script, f"locateError({error}, {json.dumps(kind)}, {json.dumps(source)})")
    assert source[place[0] : place[1]] == marked


def test_a_trace_says_how_free_every_token_was(url):
    reply = ask(url, token_trace=True, structured_outputs={"choice": ["cat", "car", "dog"]})
    content = reply["choices"][0]["message"]["content"]
    trace = reply["token_trace"]
    assert "".join(step["text"] for step in trace) == content + "<|im_end|>"
    branches = {"cat": [2, 1, 2, 1], "car": [2, 1, 2, 1], "dog": [2, 1, 1, 1]}
    assert [step["allowed"] for step in trace] == branches[content]


def test_a_long_trace_covers_every_token(url):
    reply = ask(url, token_trace=True, max_tokens=300, structured_outputs={"regex": "[ab]{200}"})
    allowed = [step["allowed"] for step in reply["token_trace"]]
    assert allowed == [2] * 200 + [1]


def test_a_free_answer_has_no_counts(url):
    trace = ask(url, token_trace=True)["token_trace"]
    assert {step["allowed"] for step in trace} == {None}
    assert "token_trace" not in ask(url)


def test_the_document_describes_bodies_the_server_takes(url):
    api = httpx.get(f"{url}/openapi.json").json()
    assert api["openapi"].startswith("3.1")
    operation = api["paths"]["/v1/chat/completions"]["post"]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    whole = schema | {"components": api["components"]}
    body = {"model": MODEL_ID, "messages": [{"role": "user", "content": "x"}]}
    jsonschema.validate(body, whole)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(body | {"temperature": "hot"}, whole)
    for path, methods in api["paths"].items():
        if "get" in methods and "{id}" not in path:
            assert httpx.get(url + path).status_code == 200
