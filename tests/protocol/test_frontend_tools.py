"""Tools without strict parameters: what may be called, how it is read, and what a cut leaves."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ninfer.contract import (
    ConflictingOptions,
    ConstraintBranch,
    FinishReason,
    IntegrityError,
    InvalidToolConstraint,
    OutputConstraint,
    OutputOptions,
    RequestOptions,
    StopPolicy,
    StopString,
    TextPrompt,
    ToolCall,
    ToolCallParse,
    ToolChoice,
    ToolConstraints,
    ToolDeclaration,
    ToolFallback,
    ToolMode,
)
from support.sessions import Transcript, drive
from support.templates import chat, small_frontend

FRONTEND = small_frontend()
EOS, OTHER_EOS = FRONTEND.vocabulary.eos_ids
SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "ratio": {"type": ["number", "null"]},
        "on": {"anyOf": [{"type": "boolean"}, {"type": "array"}]},
        "any": {},
    },
    "required": ["city"],
}


def declare(name: str, schema: dict | None = None, **changes) -> ToolDeclaration:
    schema = SCHEMA if schema is None else schema
    body = {"type": "function", "function": {"name": name, "parameters": schema}}
    return ToolDeclaration(name, json.dumps(body), json.dumps(schema), **changes)


TOOLS = (declare("lookup"), declare("ping", {"type": "object"}))
BOUND = ToolChoice()
FREE = ToolChoice(constraints=ToolConstraints.AUTOMATIC)
REQUIRED = ToolChoice(ToolMode.REQUIRED)


def call(name: str, *parameters: tuple[str, str]) -> str:
    written = "".join(f"<parameter={n}>\n{v}\n</parameter>\n" for n, v in parameters)
    return f"<tool_call>\n<function={name}>\n{written}</function>\n</tool_call>"


def encode(text: str) -> list[int]:
    return list(FRONTEND.prepare(TextPrompt(text)).token_ids) if text else []


def open_(choice: ToolChoice = BOUND, *, tools=TOOLS, limit: int = 2000, **options):
    prepared = FRONTEND.prepare(chat("hi", tools=tools, enable_thinking=False))
    options = RequestOptions(tool_choice=choice, **options)
    return FRONTEND.open_session(prepared, options, output_limit=limit)


def answer(text: str, choice: ToolChoice = BOUND, **options) -> Transcript:
    return drive(open_(choice, **options), [*encode(text), EOS])


def allows(session, text: str) -> bool:
    """Return whether the session's grammar takes a text to its end."""
    taken = session.matcher.preview([*encode(text), EOS])
    session.matcher.discard()
    return taken == len(encode(text)) + 1


def arguments(text: str, choice: ToolChoice = BOUND) -> dict:
    (found,) = answer(text, choice).output.tool_calls
    return json.loads(found.arguments_json)


@pytest.mark.parametrize("choice", [BOUND, FREE])
def test_text_then_calls_are_published_apart_and_in_order(choice):
    text = "Let me see.\n\n" + call("lookup", ("city", "上海")) + "\n" + call("ping")
    transcript = answer(text, choice)
    assert transcript.content == "Let me see.\n\n"
    assert transcript.output.tool_calls == (
        ToolCall("lookup", '{"city": "上海"}'),
        ToolCall("ping", "{}"),
    )
    assert transcript.output.tool_call_parse == ToolCallParse(True, 2)


@pytest.mark.parametrize(
    ("choice", "legal", "illegal"),
    [
        (
            BOUND,
            [
                "",
                "text",
                "a < b",
                call("ping"),
                "x" + call("ping"),
                call("ping") + "\n" + call("ping"),
            ],
            ["<tool_call>", call("other"), call("ping") + " ", call("ping") + call("ping")],
        ),
        (
            REQUIRED,
            [call("ping"), call("ping") + "\n" + call("lookup", ("city", "a"))],
            ["", "text", " " + call("ping"), call("ping") + "\ntext"],
        ),
        (
            ToolChoice(parallel=False),
            ["", "text", call("ping")],
            [call("ping") + "\n" + call("ping")],
        ),
        (
            ToolChoice.named("ping"),
            [call("ping")],
            ["", "text", call("lookup"), call("ping") + "\n" + call("ping")],
        ),
        (
            ToolChoice.named("ping", parallel=True),
            [call("ping"), call("ping") + "\n" + call("ping")],
            ["", call("lookup")],
        ),
        (
            ToolChoice(allowed_names=("ping",)),
            ["", "text", call("ping")],
            [call("lookup")],
        ),
        (
            ToolChoice(ToolMode.NONE),
            ["", "text", "<tool_call", "</tool_call>", "< tool_call>"],
            ["<tool_call>", call("ping"), "x<tool_call>x"],
        ),
        (ToolChoice(allowed_names=()), ["text"], [call("ping")]),
        (
            ToolChoice(ToolMode.NONE, constraints=ToolConstraints.AUTOMATIC),
            ["text"],
            [call("ping")],
        ),
        (
            ToolChoice(parallel=False, constraints=ToolConstraints.AUTOMATIC),
            ["text", call("ping")],
            [call("other")],
        ),
    ],
)
def test_the_choice_decides_the_language(choice, legal, illegal):
    session = open_(choice)
    assert [text for text in legal if not allows(session, text)] == []
    assert [text for text in illegal if allows(session, text)] == []


def test_plain_parameters_have_any_names_any_order_and_any_text():
    text = call("lookup", ("zz", "1"), ("days", "no number"), ("", ""))
    session = open_()
    assert not allows(session, text)
    assert allows(session, call("lookup", ("zz", "1"), ("days", "no number"), ("city", "")))
    assert not allows(session, "<tool_call>\n<function=ping>\n</function>\n</tool_call>\n")
    assert not allows(session, "<tool_call><function=ping>\n</function>\n</tool_call>")


def test_only_a_free_choice_without_demands_runs_without_a_grammar():
    assert open_(FREE).matcher is None
    assert open_(BOUND).matcher is not None
    assert open_(ToolChoice(), tools=()).matcher is None


@pytest.mark.parametrize("choice", [BOUND, FREE])
@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("city", "", ""),
        ("city", " 上海\n", " 上海\n"),
        ("city", "3", "3"),
        ("city", 'a "b" \\', 'a "b" \\'),
        ("city", "x = '</parameter>'", "x = '</parameter>'"),
        ("city", "</parameter>", "</parameter>"),
        ("city", "</tool_call><function=", "</tool_call><function="),
        ("days", "3", 3),
        ("days", " 3\n", 3),
        ("days", "3.0", 3.0),
        ("days", "three", "three"),
        ("days", "true", True),
        ("ratio", "null", None),
        ("ratio", "1", 1),
        ("ratio", "1e999", "1e999"),
        ("ratio", "NaN", "NaN"),
        ("on", "TRUE", True),
        ("on", "[1, 2]", [1, 2]),
        ("any", ' {"a": 1} ', {"a": 1}),
        ("any", " a b ", "a b"),
        ("zz", "5", 5),
        ("zz", '"\\ud800"', '"\\ud800"'),
        ("zz", "[" * 100_000, "[" * 100_000),
    ],
)
def test_plain_values_become_json_by_their_declared_types(choice, name, text, value):
    if len(text) > 1000:
        from ninfer.qwen_frontend.tool_hints import read_hints

        assert json.loads(read_hints(None).normalise(name, text).json_text) == value
        return
    assert arguments(call("lookup", (name, text)), choice) == {name: value}


def test_numbers_keep_their_spelling():
    (found,) = answer(call("lookup", ("ratio", "1.50e1"))).output.tool_calls
    assert found.arguments_json == '{"ratio": 1.50e1}'


@pytest.mark.parametrize("choice", [BOUND, FREE])
def test_empty_mistyped_and_repeated_values_are_repaired_and_counted(choice):
    text = call(
        "lookup",
        ("days", "1"),
        ("city", "a"),
        ("ratio", ""),
        ("on", "maybe"),
        ("days", "2"),
        ("days", "3"),
    )
    output = answer(text, choice).output
    assert output.tool_calls[0].arguments_json == '{"days": 3, "city": "a", "on": "maybe"}'
    assert output.tool_call_parse == ToolCallParse(
        marker_seen=True,
        structured_call_count=1,
        empty_arguments_omitted=1,
        schema_mismatch_arguments=1,
        duplicate_parameters_repaired=2,
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x <tool_call> y", ToolFallback.MALFORMED_STRUCTURE),
        ("<tool_call>", ToolFallback.MALFORMED_STRUCTURE),
        ('<tool_call>\n{"name": "ping"}\n</tool_call>', ToolFallback.MALFORMED_STRUCTURE),
        ("<tool_call>\n<function=a b>\n</function>\n</tool_call>", ToolFallback.INVALID_TOOL_NAME),
        (call("other"), ToolFallback.UNDECLARED_TOOL),
        (call("ping") + "\nDone.", ToolFallback.TRAILING_CONTENT),
        ("<tool_call>\n<function=>\n</function>\n</tool_call>", ToolFallback.MALFORMED_STRUCTURE),
    ],
)
def test_a_free_answer_that_is_no_call_stays_content(text, reason):
    transcript = answer(text, FREE)
    assert transcript.content == text == transcript.output.content
    assert transcript.output.tool_calls == ()
    assert transcript.output.tool_call_parse.fallback_reason is reason


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call><function=lookup><parameter=days>3</parameter></function></tool_call>",
        "<tool_call>\n\n<function=lookup>\n  <parameter=days>\n3\n</parameter>\n\n</function>\n"
        "</tool_call>\n\n",
        "<tool_call>\n<function=lookup>\n<parameter=days>\r\n3\r\n</parameter>\r\n</function>\r\n"
        "</tool_call>",
    ],
)
def test_a_free_call_may_have_other_white_space(text):
    assert arguments(text, FREE) == {"days": 3}


@pytest.mark.parametrize("choice", [BOUND, FREE])
def test_calls_in_prose_and_json_examples_stay_content(choice):
    text = 'Write {"name": "ping", "arguments": {}} or <function=ping>.'
    transcript = answer(text, choice)
    assert (transcript.content, transcript.output.tool_calls) == (text, ())


def test_thinking_is_never_read_for_calls():
    prepared = FRONTEND.prepare(chat("hi", tools=TOOLS))
    session = FRONTEND.open_session(prepared, RequestOptions(), output_limit=1000)
    text = "I could " + call("ping") + "\n</think>\n\nDone."
    transcript = drive(session, [*encode(text), EOS])
    assert transcript.reasoning == "I could " + call("ping")
    assert (transcript.content, transcript.output.tool_calls) == ("Done.", ())


@pytest.mark.parametrize("choice", [BOUND, FREE])
def test_a_cut_at_any_token_keeps_finished_calls_only(choice):
    first, second = call("lookup", ("city", "上海"), ("days", "3")), call("ping")
    tokens = encode("ok " + first + "\n" + second)
    ends = [len(encode("ok " + first)), len(tokens)]
    for cut in range(1, len(tokens) + 1):
        for reason in (FinishReason.OUTPUT_LIMIT, FinishReason.CANCELLED):
            limit = cut if reason is FinishReason.OUTPUT_LIMIT else 2000
            transcript = drive(open_(choice, limit=limit), tokens[:cut])
            assert transcript.finish is reason
            finished = sum(cut >= end for end in ends)
            calls = (ToolCall("lookup", '{"city": "上海", "days": 3}'), ToolCall("ping", "{}"))
            assert transcript.output.tool_calls == calls[:finished]
            assert transcript.content == ("ok " * (cut > 3) or transcript.content)
            assert "ok <tool_call".startswith(transcript.content)


@given(st.lists(st.integers(1, 40), max_size=12), st.sampled_from([BOUND, FREE]))
def test_events_do_not_depend_on_how_the_stream_is_cut_into_rounds(sizes, choice):
    text = "ok < " + call("lookup", ("city", "x</parameter>y")) + "\n" + call("ping")
    tokens = [*encode(text), EOS]
    assert drive(open_(choice), tokens, sizes) == drive(open_(choice), tokens)


@pytest.mark.parametrize("choice", [BOUND, FREE])
def test_every_cut_in_two_publishes_the_same_calls(choice):
    text = "ok\n\n" + call("lookup", ("city", "上海")) + "\n" + call("ping")
    tokens = [*encode(text), EOS]
    expected = drive(open_(choice), tokens)
    for cut in range(1, len(tokens)):
        assert drive(open_(choice), tokens, [cut, len(tokens)]) == expected


def test_many_calls_in_one_round_stay_apart():
    text = call("ping") + "\n" + call("ping") + "\n" + call("lookup", ("city", "a"))
    tokens = [*encode(text), EOS]
    transcript = drive(open_(), tokens, [len(tokens)])
    assert [found.name for found in transcript.output.tool_calls] == ["ping", "ping", "lookup"]


@pytest.mark.parametrize(
    ("text", "content", "calls", "branch"),
    [
        ('{"a":"<tool_call>"}', '{"a":"<tool_call>"}', 0, ConstraintBranch.CONTENT),
        (call("ping"), "", 1, ConstraintBranch.TOOLS),
        (call("ping") + "\n" + call("ping"), "", 2, ConstraintBranch.TOOLS),
    ],
)
@pytest.mark.parametrize("choice", [BOUND, FREE])
def test_json_and_calls_exclude_each_other_in_one_answer(text, content, calls, branch, choice):
    session = open_(choice, constraint=OutputConstraint.json_object())
    assert not allows(session, "text")
    assert not allows(session, text + "\n{}")
    transcript = drive(session, [*encode(text), EOS])
    assert (transcript.content, len(transcript.output.tool_calls)) == (content, calls)
    assert session.constraint_report().branch is branch


def test_the_branch_is_decided_by_committed_text_only():
    session = open_(constraint=OutputConstraint.json_object())
    session.preview(encode("{"))
    session.discard()
    assert session.constraint_report().branch is ConstraintBranch.UNDECIDED
    session.preview(encode("<"))
    session.commit()
    assert session.constraint_report().branch is ConstraintBranch.TOOLS


def test_a_required_call_beside_json_leaves_only_calls_but_still_reads_the_schema():
    session = open_(REQUIRED, constraint=OutputConstraint.json_object())
    assert allows(session, call("ping"))
    assert not allows(session, "{}")


def test_no_calls_beside_a_constraint_leave_the_constraint_alone():
    session = open_(ToolChoice(ToolMode.NONE), constraint=OutputConstraint.choice(["<tool_call>"]))
    assert allows(session, "<tool_call>")


@pytest.mark.parametrize(
    "constraint", [OutputConstraint.choice(["a"]), OutputConstraint.regex("a")]
)
def test_other_constraints_cannot_stand_beside_tools(constraint):
    with pytest.raises(ConflictingOptions, match="constraint and tools"):
        open_(constraint=constraint)


@pytest.mark.parametrize(
    ("choice", "tools", "fact"),
    [
        (REQUIRED, (), "no tool may be called"),
        (ToolChoice(ToolMode.REQUIRED, ()), TOOLS, "no tool may be called"),
        (ToolChoice(allowed_names=("other",)), TOOLS, r"allowed_names\[0\]: 'other'"),
        (ToolChoice.named("other"), TOOLS, "'other' is not declared"),
        (ToolChoice.named("other"), (), "'other' is not declared"),
        (BOUND, (declare("a b"),), "^/0: 'a b'"),
        (BOUND, (declare("ok"), declare("x" * 129)), "^/1: "),
    ],
)
def test_impossible_tool_choices_are_refused(choice, tools, fact):
    with pytest.raises(InvalidToolConstraint, match=fact):
        open_(choice, tools=tools)


def test_the_length_of_tool_names_is_an_option():
    with pytest.raises(InvalidToolConstraint, match="at most 5"):
        open_(output=OutputOptions(tool_name_characters=5))


@pytest.mark.parametrize(
    "options",
    [
        {"stop": StopPolicy(strings=(StopString("x"),))},
        {"stop": StopPolicy(token_ids=(1,))},
        {"output": OutputOptions(raw=True)},
    ],
)
def test_bound_calls_end_only_by_themselves(options):
    with pytest.raises(ConflictingOptions, match="tools and "):
        open_(**options)
    assert open_(FREE, **options).matcher is None


def test_raw_free_answers_show_calls_as_text():
    text = "a" + call("ping")
    assert answer(text, FREE, output=OutputOptions(raw=True)).content == text


def test_descriptions_and_hints_change_no_language():
    def cache(tools):
        return open_(tools=tools).constraint_report().cache.value

    wordings = ["", '"<parameter=a>\n</parameter>"', "x" * 4096]
    tools = [(declare("probe", SCHEMA | {"description": text}),) for text in wordings]
    cache(tools[0])
    assert [cache(t) for t in tools] == ["hit"] * 3
    assert cache((declare("probe", {"type": "object"}),)) == "hit"


def test_a_bound_answer_that_cannot_be_read_is_our_own_fault():
    from ninfer.qwen_frontend.tool_contract import select_tools
    from ninfer.qwen_frontend.tool_publication import ToolContent

    contract = select_tools(TOOLS, BOUND, name_limit=128)
    content = ToolContent(contract, decides_once=False, name_limit=128)
    content.feed(call("ping") + "x")
    with pytest.raises(IntegrityError, match="trailing_content"):
        content.finish(FinishReason.STOP_TOKEN)
