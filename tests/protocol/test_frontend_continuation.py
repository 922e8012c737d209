"""Going on with the final assistant message: the exact region of the rendering, or a refusal."""

import pytest

from ninfer.contract import (
    ChatPrompt,
    ConflictingOptions,
    ConstraintBranch,
    Continuation,
    InvalidContinuation,
    Message,
    OutputConstraint,
    PromptOptions,
    RequestOptions,
    Role,
    TextPrompt,
    ToolCall,
    ToolDeclaration,
)
from ninfer.qwen_frontend import Frontend, bundled_template
from support.sessions import drive
from support.templates import (
    MODEL_OPENS_STYLE,
    PLAIN_STYLE,
    QWEN_STYLE,
    chat,
    small_facts,
    small_frontend,
)

CONTINUED = {"continuation": Continuation.CONTINUE_FINAL_ASSISTANT, "enable_thinking": False}
PING = ToolDeclaration("ping", '{"type": "function", "function": {"name": "ping"}}')


def encode(frontend: Frontend, text: str) -> list[int]:
    return list(frontend.prepare(TextPrompt(text)).token_ids) if text else []


def continue_(frontend: Frontend, text: str, suffix: str, **options):
    prepared = frontend.prepare(chat("hi", text, **CONTINUED, tools=options.pop("tools", ())))
    session = frontend.open_session(prepared, RequestOptions(**options), output_limit=1000)
    tokens = [*encode(frontend, suffix), frontend.facts.eos_ids[0]]
    return drive(session, tokens), session.constraint_report()


@pytest.mark.parametrize("source", [QWEN_STYLE, MODEL_OPENS_STYLE, PLAIN_STYLE, bundled_template()])
def test_the_prompt_ends_with_the_given_text(source):
    frontend = small_frontend(source)
    prepared = frontend.prepare(chat("hi", '{"name":', **CONTINUED))
    text = b"".join(frontend.vocabulary.pieces[t] for t in prepared.token_ids).decode()
    assert text.endswith('{"name":')
    assert text.count("<|im_end|>") == 1
    assert prepared.continued_text == '{"name":'


def test_only_the_suffix_is_published_and_completeness_covers_both_parts():
    transcript, report = continue_(
        small_frontend(), '{"name":', '"上海"}', constraint=OutputConstraint.json_object()
    )
    assert transcript.content == '"上海"}'
    assert (report.branch, report.complete, report.terminated) == (
        ConstraintBranch.CONTENT,
        True,
        True,
    )


def test_an_unfinished_whole_is_not_complete():
    frontend = small_frontend()
    prepared = frontend.prepare(chat("hi", '{"name":', **CONTINUED))
    options = RequestOptions(constraint=OutputConstraint.json_object())
    session = frontend.open_session(prepared, options, output_limit=2)
    drive(session, encode(frontend, '"上海"}')[:2])
    assert not session.constraint_report().complete
    assert session.constraint_report().branch is ConstraintBranch.CONTENT


def test_a_prefix_may_end_inside_a_unit_that_one_token_would_hold():
    transcript, report = continue_(
        small_frontend(), "tr", "ue", constraint=OutputConstraint.choice(["true", "false"])
    )
    assert (transcript.content, report.terminated) == ("ue", True)


def test_a_prefix_outside_the_language_is_refused_with_the_byte():
    with pytest.raises(InvalidContinuation, match="byte 2 of"):
        continue_(small_frontend(), "trx", "", constraint=OutputConstraint.choice(["true"]))


def test_a_prefix_that_is_already_the_whole_answer_may_end_at_once():
    transcript, report = continue_(
        small_frontend(), "true", "", constraint=OutputConstraint.choice(["true"])
    )
    assert (transcript.content, report.terminated) == ("", True)


@pytest.mark.parametrize(
    ("source", "text", "fact"),
    [
        (QWEN_STYLE, "text ", "changes the text"),
        (QWEN_STYLE, " text", "changes the text"),
        (PLAIN_STYLE.replace("'<|im_end|>'", "'!<|im_end|>'"), "text", "behind"),
        (
            PLAIN_STYLE.replace(
                "{% for message in messages %}",
                "{% for message in messages %}"
                "{% if message.role == 'assistant' %}Answer: {% endif %}",
            ),
            "text",
            "in front of",
        ),
        (PLAIN_STYLE.replace("message['content']", "message['content'] * 2"), "text", "once"),
        (PLAIN_STYLE.replace("message['content']", "'x'"), "text", "once"),
        (
            PLAIN_STYLE.replace("message['content']", "message['content']|upper|lower"),
            "Text",
            "changes the text",
        ),
    ],
)
def test_a_template_that_changes_or_wraps_the_text_is_refused(source, text, fact):
    with pytest.raises(InvalidContinuation, match=fact):
        Frontend(small_facts(source)).prepare(chat("hi", text, **CONTINUED))


@pytest.mark.parametrize(
    "final",
    [
        Message(Role.USER, "text"),
        Message(Role.ASSISTANT, "text", reasoning="why"),
        Message(Role.ASSISTANT, "text", tool_calls=(ToolCall("ping", "{}"),)),
    ],
)
def test_only_plain_assistant_text_can_be_continued(final):
    prompt = ChatPrompt((Message(Role.USER, "hi"), final), PromptOptions(**CONTINUED))
    with pytest.raises(InvalidContinuation, match=r"prompt\.continuation"):
        small_frontend().prepare(prompt)


@pytest.mark.parametrize("source", [QWEN_STYLE, MODEL_OPENS_STYLE])
def test_thinking_must_be_off(source):
    with pytest.raises(ConflictingOptions, match="enable_thinking"):
        small_frontend(source).prepare(
            chat("hi", "text", continuation=Continuation.CONTINUE_FINAL_ASSISTANT)
        )


def test_a_tokenizer_that_changes_the_text_is_refused():
    facts = small_facts()
    normalised = facts.tokenizer_json.replace('"normalizer":null', '"normalizer":{"type":"NFC"}')
    assert normalised != facts.tokenizer_json
    with pytest.raises(InvalidContinuation, match="tokenizer"):
        Frontend(small_facts(tokenizer_json=normalised)).prepare(chat("hi", "e\u0301", **CONTINUED))


def test_a_first_call_may_be_continued_and_is_published_whole():
    transcript, report = continue_(
        small_frontend(),
        "<tool_call>\n<function=pi",
        "ng>\n</function>\n</tool_call>",
        tools=(PING,),
    )
    assert transcript.output.tool_calls == (ToolCall("ping", "{}"),)
    assert (transcript.content, report.branch) == ("", ConstraintBranch.TOOLS)


def test_a_finished_call_cannot_be_continued():
    whole = "<tool_call>\n<function=ping>\n</function>\n</tool_call>"
    for text in (whole, whole + "\n<tool_call>"):
        with pytest.raises(InvalidContinuation, match="complete call"):
            continue_(small_frontend(), text, "", tools=(PING,))


def test_text_that_only_began_like_a_call_is_not_published_twice():
    transcript, report = continue_(small_frontend(), "say <tool", "box> it", tools=(PING,))
    assert transcript.content == "box> it"
    assert report.branch is ConstraintBranch.CONTENT


@pytest.mark.parametrize(
    ("text", "suffix", "branch"),
    [
        ('{"a":', "1}", ConstraintBranch.CONTENT),
        ("<tool_", "call>\n<function=ping>\n</function>\n</tool_call>", ConstraintBranch.TOOLS),
    ],
)
def test_the_branch_of_json_beside_tools_is_decided_by_the_prefix(text, suffix, branch):
    transcript, report = continue_(
        small_frontend(), text, suffix, tools=(PING,), constraint=OutputConstraint.json_object()
    )
    assert report.branch is branch
    assert report.terminated
    assert transcript.content == ("1}" if branch is ConstraintBranch.CONTENT else "")
