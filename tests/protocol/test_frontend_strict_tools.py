"""Strict tools: every generated call is its schema's, and reads back to the same bytes."""

import dataclasses
import json
import os
import random

import pytest

from ninfer.contract import (
    FinishReason,
    InvalidSchema,
    JsonPointer,
    RequestOptions,
    TextPrompt,
    ToolCall,
    ToolChoice,
    ToolMode,
    UnsatisfiableConstraint,
    UnsupportedSchema,
)
from support.masks import allowed_tokens
from support.sessions import drive
from support.templates import chat, small_frontend
from support.tool_sets import random_tool_set, strict_tool
from support.tool_walks import check_random_set, random_answer

FRONTEND = small_frontend()
EOS = FRONTEND.vocabulary.eos_ids[0]
SETS = 2000 if os.environ.get("NINFER_SLOW") else 60


def encode(text: str) -> list[int]:
    return list(FRONTEND.prepare(TextPrompt(text)).token_ids) if text else []


def open_(*tools, choice: ToolChoice | None = None, limit: int = 4000):
    prepared = FRONTEND.prepare(chat("hi", tools=tools, enable_thinking=False))
    options = RequestOptions(tool_choice=choice or ToolChoice.named(tools[0].name))
    return FRONTEND.open_session(prepared, options, output_limit=limit)


def allows(session, text: str) -> bool:
    tokens = [*encode(text), EOS]
    taken = session.matcher.preview(tokens)
    session.matcher.discard()
    return taken == len(tokens)


def read(session, text: str) -> ToolCall:
    (found,) = drive(session, [*encode(text), EOS]).output.tool_calls
    return found


def call(name: str, *parameters: tuple[str, str]) -> str:
    written = "".join(f"<parameter={n}>\n{v}\n</parameter>\n" for n, v in parameters)
    return f"<tool_call>\n<function={name}>\n{written}</function>\n</tool_call>"


def closed(properties: dict, required: tuple[str, ...] | None = None, **more) -> dict:
    names = list(properties) if required is None else list(required)
    return {
        "type": "object",
        "properties": properties,
        "required": names,
        "additionalProperties": False,
        **more,
    }


def test_every_generated_call_is_valid_and_reencodes_to_the_same_bytes():
    choice = ToolChoice(ToolMode.REQUIRED)
    whole = 0
    for seed in range(SETS):
        whole += check_random_set(
            seed,
            lambda tools: open_(*tools, choice=choice),
            FRONTEND.vocabulary,
            encode,
        )
    assert whole > SETS * 0.8


LOOKUP = strict_tool("lookup", closed({"city": {"type": "string"}, "days": {"type": "integer"}}))


def test_only_the_declared_layout_is_possible():
    session = open_(LOOKUP)
    assert allows(session, call("lookup", ("city", "上海"), ("days", "3")))
    for text in (
        call("lookup", ("days", "3"), ("city", "a")),
        call("lookup", ("city", "a")),
        call("lookup", ("city", "a"), ("city", "b"), ("days", "3")),
        call("lookup", ("city", "a"), ("days", "3"), ("more", "3")),
        call("lookup", ("city", "a"), ("days", " 3")),
        call("lookup", ("city", "a"), ("days", "3\n")),
        call("lookup", ("city", "a"), ("days", '"3"')),
        call("lookup", ("city", "a"), ("days", "9223372036854775808")),
        call("lookup", ("city", "a"), ("days", "3")).replace(">\n<", "><"),
    ):
        assert not allows(session, text), text


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "\n",
        "\n\n 上海 \n",
        "</parameter>",
        "x = '</parameter>'",
        "</tool_call>\n<function=",
        "\n</parameter1>",
        "\n</parameter",
        '"quoted\\"',
        "\t\x00\x1f",
    ],
)
def test_raw_strings_keep_every_byte(value):
    session = open_(LOOKUP)
    found = read(session, call("lookup", ("city", value), ("days", "0")))
    assert json.loads(found.arguments_json) == {"city": value, "days": 0}


def test_a_value_can_never_hold_its_own_closing():
    session = open_(LOOKUP)
    assert not allows(session, call("lookup", ("city", "a\n</parameter>\nb"), ("days", "0")))


def test_a_drifting_value_that_never_closes_publishes_nothing():
    session = open_(LOOKUP, limit=40)
    text = "<tool_call>\n<function=lookup>\n<parameter=city>\n上海\n</parameter1>" + "x" * 40
    output = drive(session, encode(text)).output
    assert output.tool_calls == ()
    assert output.content == ""


@pytest.mark.parametrize("schema", [None, closed({})])
def test_a_tool_without_parameters_is_forced_from_name_to_end(schema):
    session = open_(strict_tool("ping", schema))
    tokens = encode("<tool_call>\n<function=ping>\n</function>\n</tool_call>")
    text, whole = b"", call("ping").encode()
    for token in tokens:
        options = allowed_tokens(session.matcher)
        assert all(whole.startswith(text + FRONTEND.vocabulary.pieces[o]) for o in options)
        session.preview([token])
        session.commit()
        text += FRONTEND.vocabulary.pieces[token]
    assert allowed_tokens(session.matcher) == set(FRONTEND.vocabulary.eos_ids)


def test_optional_parameters_may_be_left_out_but_keep_their_order():
    properties = {"pattern": {"type": "string"}, "path": {"type": "string"}}
    session = open_(strict_tool("glob", closed(properties, required=("pattern",))))
    assert allows(session, call("glob", ("pattern", "*")))
    assert allows(session, call("glob", ("pattern", "*"), ("path", "/")))
    assert not allows(session, call("glob", ("path", "/")))
    assert not allows(session, call("glob", ("path", "/"), ("pattern", "*")))


def test_nested_values_use_the_separators_of_the_template():
    schema = closed(
        {
            "o": closed(
                {"a": {"type": "array", "items": {"type": "integer"}}, "s": {"type": "string"}}
            ),
            "c": {"const": {"k": [1, "上"], "n": None}},
        }
    )
    session = open_(strict_tool("nest", schema))
    good = call("nest", ("o", '{"a": [1, 2], "s": "x"}'), ("c", '{"k": [1, "上"], "n": null}'))
    assert allows(session, good)
    assert not allows(session, good.replace(", ", ","))
    assert not allows(session, good.replace(": ", ":"))
    found = read(session, good)
    assert found.arguments_json == (
        '{"o": {"a": [1, 2], "s": "x"}, "c": {"k": [1, "上"], "n": null}}'
    )


def test_pattern_length_and_closing_hold_together():
    schema = closed({"t": {"type": "string", "pattern": "^[\\n</>a-z]+$", "maxLength": 14}})
    session = open_(strict_tool("t", schema))
    assert allows(session, call("t", ("t", "ab\n</paramete")))
    assert not allows(session, call("t", ("t", "a\n</parameter>")))
    assert not allows(session, call("t", ("t", "a" * 15)))
    assert not allows(session, call("t", ("t", "A")))


def test_a_length_alone_keeps_a_string_to_one_line_and_a_pattern_frees_it():
    properties = {
        "line": {"type": "string", "minLength": 2, "maxLength": 30},
        "text": {"type": "string", "pattern": "^[\\s\\S]*$", "maxLength": 30},
        "least": {"type": "string", "minLength": 2},
    }
    session = open_(strict_tool("t", closed(properties)))

    def takes(**values):
        texts = {"line": "ab", "text": "", "least": "ab"} | values
        return allows(session, call("t", *texts.items()))

    assert takes(line="</parameter> <b>")
    assert takes(text="a\n</p\n\nb")
    assert takes(least="ab\n</p\n\n")
    assert not takes(line="a\nb")
    assert not takes(line="a")
    assert not takes(line="a" * 31)
    assert not takes(text="a\n</parameter>")
    assert not takes(text="a" * 31)
    assert not takes(least="a")


def test_a_strict_tool_and_a_plain_one_stand_side_by_side():
    plain = strict_tool("free", {"type": "object"}, strict=False)
    session = open_(LOOKUP, plain, choice=ToolChoice())
    assert allows(session, call("free", ("zz", "1")))
    assert not allows(session, call("lookup", ("zz", "1")))


def test_descriptions_change_no_strict_language():
    outcomes = []
    for wording in ("first", '"<parameter=q>\n</parameter>"', "x" * 4096, "first"):
        schema = closed({"q": {"type": "string", "description": wording}}, title=wording)
        outcomes.append(open_(strict_tool("worded", schema)).constraint_report().cache.value)
    assert outcomes == ["built", "hit", "hit", "hit"]


def test_one_strict_tool_binds_an_otherwise_free_choice():
    from ninfer.contract import ToolConstraints

    free = ToolChoice(constraints=ToolConstraints.AUTOMATIC)
    assert open_(LOOKUP, choice=free).matcher is not None


@pytest.mark.parametrize(
    ("schema", "error", "pointer"),
    [
        ({"type": "object", "required": ["a"]}, (InvalidSchema, UnsupportedSchema), "/required"),
        ({"type": "object", "properties": {}}, UnsupportedSchema, "/additionalProperties"),
        (closed({}) | {"additionalProperties": {}}, UnsupportedSchema, "/additionalProperties"),
        ({"type": "array"}, UnsupportedSchema, "/type"),
        ({}, UnsupportedSchema, "/type"),
        ({"anyOf": [closed({}), closed({"a": {}})]}, UnsupportedSchema, "/anyOf"),
        ({"const": {}}, UnsupportedSchema, "/const"),
        ({"$defs": {"r": {"enum": [{}]}}, "$ref": "#/$defs/r"}, UnsupportedSchema, "/$defs/r/enum"),
        (closed({"a": {"type": ["string", "null"]}}), UnsupportedSchema, "/properties/a"),
        (closed({"a": {}}), UnsupportedSchema, "/properties/a"),
        (closed({"a": {"const": "x\n</parameter>"}}), UnsupportedSchema, "/properties/a/const"),
        (
            closed({"a": {"enum": ["x", "\n</parameter>\n"]}}),
            UnsupportedSchema,
            "/properties/a/enum/1",
        ),
        (closed({"a>b": {"type": "null"}}), UnsupportedSchema, "/properties/a>b"),
        (closed({"": {"type": "null"}}), UnsupportedSchema, "/properties/"),
        (closed({"a": {"not": 3}}), InvalidSchema, "/properties/a/not"),
        (closed({"a": {"type": "integer", "minimum": 1e400}}), InvalidSchema, None),
        (closed({"a": False}), UnsatisfiableConstraint, None),
        (
            closed({"a": {"type": "integer", "maxlength": 1}}),
            UnsupportedSchema,
            "/properties/a/maxlength",
        ),
    ],
)
def test_what_cannot_be_enforced_is_refused_with_tool_and_place(schema, error, pointer):
    text = json.dumps(schema).replace("Infinity", "1e400")
    tool = strict_tool("t", {})
    tool = type(tool)(tool.name, tool.declaration_json, text, strict=True)
    with pytest.raises(error) as caught:
        open_(LOOKUP, tool, choice=ToolChoice())
    assert caught.value.origin.tool == "t"
    assert str(caught.value).startswith("tool:t")
    if pointer is not None:
        assert caught.value.location == JsonPointer.parse(pointer)


@pytest.mark.parametrize("word", ["$ref", "allOf"])
def test_the_root_may_be_a_reference_or_a_composition(word):
    inner = closed({"a": {"type": "integer"}})
    schema = {"$defs": {"r": inner}, "$ref": "#/$defs/r"} if word == "$ref" else {"allOf": [inner]}
    session = open_(strict_tool("t", schema))
    assert allows(session, call("t", ("a", "1")))
    assert not allows(session, call("t"))


def test_a_plain_tool_with_the_same_schema_is_not_refused():
    tool = strict_tool("t", {"type": "object", "required": ["a"], "not": 3}, strict=False)
    assert allows(open_(tool), call("t", ("b", "1")))


def test_an_unfinished_call_keeps_the_finished_ones_only():
    tokens = encode(
        call("lookup", ("city", "a"), ("days", "3")) + "\n" + call("lookup", ("city", "b"))[:-40]
    )
    output = drive(open_(LOOKUP, choice=ToolChoice()), tokens).output
    assert output.tool_calls == (ToolCall("lookup", '{"city": "a", "days": 3}'),)


def test_random_answers_under_any_choice_can_always_be_read():
    source = random.Random(7)
    for seed in range(SETS):
        tools = tuple(
            dataclasses.replace(tool, strict=source.random() < 0.5)
            for tool in random_tool_set(seed)
        )
        names = tuple(tool.name for tool in tools)
        choice = ToolChoice(
            source.choice(list(ToolMode)),
            source.choice([None, names[:1]]),
            parallel=source.random() < 0.5,
        )
        options = RequestOptions(tool_choice=choice)
        prepared = FRONTEND.prepare(chat("hi", tools=tools))
        walked, session = (
            FRONTEND.open_session(prepared, options, output_limit=4000) for _ in range(2)
        )
        close = encode("so\n</think>\n\n")
        walked.matcher.preview(close)
        walked.matcher.commit()
        tokens = random_answer(walked, random.Random(seed), FRONTEND.vocabulary, encode, 120)
        transcript = drive(session, [*close, *tokens], [5] * len(tokens))
        output = transcript.output
        assert transcript.reasoning == "so"
        assert output.tool_call_parse.structured_call_count == len(output.tool_calls)
        assert {found.name for found in output.tool_calls} <= set(choice.allowed_names or names)
        assert all(isinstance(json.loads(c.arguments_json), dict) for c in output.tool_calls)
        assert len(output.tool_calls) <= 1 or choice.parallel
        if transcript.finish is FinishReason.STOP_TOKEN and choice.mode is ToolMode.REQUIRED:
            assert output.tool_calls
            assert output.content == ""
        if choice.mode is ToolMode.NONE:
            assert not output.tool_calls
            assert "<tool_call>" not in output.content
