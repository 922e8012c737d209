"""From messages to token ids: the model's own template, its options, and its refusals."""

import json

import pytest

from ninfer.contract import (
    ChatPrompt,
    ConflictingOptions,
    InvalidOption,
    InvalidPrompt,
    InvalidToolConstraint,
    Message,
    ModelError,
    PromptOptions,
    ReasoningEffort,
    Role,
    TextPrompt,
    TokenPrompt,
    ToolCall,
    ToolDeclaration,
    UnsupportedOption,
)
from ninfer.qwen_frontend import Frontend, bundled_template
from ninfer.qwen_frontend.template import ChatTemplate
from support.templates import (
    EFFORT_STYLE,
    MODEL_OPENS_STYLE,
    PLAIN_STYLE,
    QWEN_STYLE,
    chat,
    small_facts,
    small_frontend,
)


def rendered(frontend: Frontend, prompt: ChatPrompt) -> str:
    ids = frontend.prepare(prompt).token_ids
    return b"".join(frontend.vocabulary.pieces[token] for token in ids).decode()


def declared(name: str, **function) -> ToolDeclaration:
    body = {"type": "function", "function": {"name": name, **function}}
    return ToolDeclaration(name, json.dumps(body, ensure_ascii=False))


def test_the_generation_prompt_opens_thinking_unless_it_is_off():
    frontend = small_frontend()
    on = frontend.prepare(chat("hi"))
    off = frontend.prepare(chat("hi", enable_thinking=False))
    assert on.starts_in_reasoning
    assert not off.starts_in_reasoning
    assert rendered(frontend, chat("hi")).endswith("<|im_start|>assistant\n<think>\n")
    assert rendered(frontend, chat("hi", enable_thinking=False)).endswith("<think>\n\n</think>\n\n")
    assert on.report.prompt_tokens == len(on.token_ids)


def test_a_model_that_opens_its_own_thinking_is_opened_for_it():
    frontend = small_frontend(MODEL_OPENS_STYLE)
    prepared = frontend.prepare(chat("hi"))
    assert prepared.starts_in_reasoning
    assert rendered(frontend, chat("hi")).endswith("<|im_start|>assistant\n<think>\n")
    off = chat("hi", enable_thinking=False)
    assert not frontend.prepare(off).starts_in_reasoning
    assert rendered(frontend, off).endswith("<think>\n\n</think>\n\n")


def test_a_template_that_only_mentions_thinking_does_not_think():
    source = PLAIN_STYLE + "{# <think> </think> #}"
    with pytest.raises(UnsupportedOption, match="does not think"):
        small_frontend(source).prepare(chat("hi", enable_thinking=True))


def test_a_user_who_quotes_the_marker_opens_no_thinking():
    frontend = small_frontend(PLAIN_STYLE)
    assert not frontend.prepare(chat("what is <think>")).starts_in_reasoning


def test_marks_become_their_own_tokens_and_text_is_kept_to_the_byte():
    frontend = small_frontend()
    ids = frontend.prepare(chat("上 <b> é\t")).token_ids
    assert ids.count(257) == 2
    assert "上 <b> é" in rendered(frontend, chat("上 <b> é\t"))


def test_tools_calls_and_results_render_in_the_model_layout():
    call = ToolCall("weather", '{"city": "上海", "opts": {"a": [1, true]}, "n": 3}')
    messages = (
        Message(Role.USER, "go"),
        Message(Role.ASSISTANT, "", tool_calls=(call, ToolCall("ping", "{}"))),
        Message(Role.TOOL, "sunny", tool_call_id="1", name="weather"),
    )
    tools = (declared("weather", description='<b> "上" '), declared("ping"))
    for source in (QWEN_STYLE, bundled_template()):
        text = rendered(small_frontend(source), ChatPrompt(messages, PromptOptions(tools=tools)))
        assert '"description": "<b> \\"上\\" "' in text
        assert (
            "<tool_call>\n<function=weather>\n<parameter=city>\n上海\n</parameter>\n"
            '<parameter=opts>\n{"a": [1, true]}\n</parameter>\n<parameter=n>\n3\n</parameter>\n'
            "</function>\n</tool_call>\n<tool_call>\n<function=ping>\n</function>\n</tool_call>"
        ) in text
        assert "<tool_response>\nsunny\n</tool_response>" in text


def test_the_bundled_template_shows_tools_for_a_chatml_model_whose_own_has_none():
    frontend = small_frontend(PLAIN_STYLE)
    text = rendered(frontend, chat("hi", tools=(declared("ping"),)))
    assert '"name": "ping"' in text
    assert "<think>" not in text
    assert text.endswith("<|im_start|>assistant\n")


def test_the_bundled_template_thinks_with_a_model_that_thinks():
    frontend = small_frontend(bundled_template())
    assert frontend.prepare(chat("hi")).starts_in_reasoning
    assert not frontend.prepare(chat("hi", enable_thinking=False)).starts_in_reasoning


def test_a_template_without_tools_and_without_a_replacement_is_refused():
    frontend = Frontend(small_facts("{{ messages[0].content }}"))
    with pytest.raises(UnsupportedOption, match=r"prompt\.tools"):
        frontend.prepare(chat("hi", tools=(declared("ping"),)))


def test_a_named_tool_template_of_the_checkpoint_wins_over_the_bundled_one():
    facts = small_facts(PLAIN_STYLE, tool_template="T{{ tools | length }}{{ messages[0].content }}")
    assert rendered(Frontend(facts), chat("hi", tools=(declared("ping"),))) == "T1hi"


def test_a_model_without_a_template_still_takes_raw_prompts():
    frontend = Frontend(small_facts(None))
    with pytest.raises(UnsupportedOption, match="no chat template"):
        frontend.prepare(chat("hi"))
    assert not frontend.prepare(TextPrompt("hi")).is_chat


def test_raw_tokens_are_taken_as_they_are():
    assert small_frontend().prepare(TokenPrompt((1, 2, 3))).token_ids == (1, 2, 3)


@pytest.mark.parametrize("ids", [(), (1, 999999), (-1,)])
def test_token_ids_outside_the_domain_are_refused(ids):
    with pytest.raises(InvalidPrompt):
        small_frontend().prepare(TokenPrompt(ids))


def test_text_that_is_not_unicode_is_refused():
    with pytest.raises(InvalidPrompt, match="surrogate"):
        small_frontend().prepare(chat("a\ud800"))


def test_what_the_template_refuses_names_the_template_line():
    messages = (Message(Role.USER, "a"), Message(Role.SYSTEM, "b"))
    line = 1 + QWEN_STYLE[: QWEN_STYLE.index("System message must")].count("\n")
    with pytest.raises(InvalidPrompt, match=f"chat template line {line}: System message must"):
        small_frontend().prepare(ChatPrompt(messages))


def test_a_template_that_fails_on_the_data_names_its_line():
    template = ChatTemplate("a\n{{ x.y.z }}")
    with pytest.raises(InvalidPrompt, match="chat template line 2"):
        template.render({})


def test_a_template_that_cannot_be_read_is_the_models_fault():
    with pytest.raises(ModelError, match="chat template line 3"):
        ChatTemplate("a\n\n{% if %}")


@pytest.mark.parametrize(
    "source",
    [
        "{{ messages.__class__.__mro__ }}",
        "{{ ''.__class__ }}",
        "{{ messages.append(1) }}",
        "{% for i in range(999999999) %}{% endfor %}",
    ],
)
def test_the_sandbox_keeps_templates_from_python_and_from_changing_data(source):
    messages: list[int] = []
    try:
        text = ChatTemplate(source).render({"messages": messages})
    except InvalidPrompt:
        text = ""
    assert messages == []
    assert "class" not in text


def test_templates_have_the_usual_globals_and_filters():
    source = (
        "{%- for i in [1, 2, 3] -%}{%- if i == 2 -%}{%- continue -%}{%- endif -%}{{ i }}"
        "{%- endfor -%}{{ {'k': 'é<'} | tojson }}{{ strftime_now('%Y') | length }}"
        "{% generation %}x{% endgeneration %}{{ bos_token }}"
    )
    assert ChatTemplate(source, bos_token="B").render({}) == '13{"k": "é<"}4xB'


@pytest.mark.parametrize(
    ("effort", "used"),
    [
        (None, "xhigh"),
        (ReasoningEffort.MINIMAL, "low"),
        (ReasoningEffort.LOW, "low"),
        (ReasoningEffort.MEDIUM, "medium"),
        (ReasoningEffort.HIGH, "xhigh"),
        (ReasoningEffort.MAX, "xhigh"),
    ],
)
def test_an_effort_the_template_does_not_know_becomes_the_nearest(effort, used):
    text = rendered(small_frontend(EFFORT_STYLE), chat("hi", reasoning_effort=effort))
    assert f"effort: {used}<|im_end|>" in text


@pytest.mark.parametrize("source", [EFFORT_STYLE, QWEN_STYLE])
def test_no_effort_turns_thinking_off(source):
    frontend = small_frontend(source)
    prompt = chat("hi", reasoning_effort=ReasoningEffort.NONE)
    assert not frontend.prepare(prompt).starts_in_reasoning
    assert frontend.prepare(chat("hi", reasoning_effort=ReasoningEffort.LOW)).starts_in_reasoning


@pytest.mark.parametrize(
    "options", [{"enable_thinking": True}, {"reasoning_effort": ReasoningEffort.HIGH}]
)
def test_thinking_is_refused_where_the_model_does_not_think(options):
    frontend = small_frontend(PLAIN_STYLE)
    with pytest.raises(UnsupportedOption, match="does not think"):
        frontend.prepare(chat("hi", **options))
    assert frontend.prepare(chat("hi", enable_thinking=False)).token_ids


def test_template_kwargs_reach_the_template():
    text = rendered(
        small_frontend(), chat("hi", chat_template_kwargs_json='{"enable_thinking": false}')
    )
    assert text.endswith("</think>\n\n")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[1]", InvalidOption),
        ("{", InvalidOption),
        ('{"messages": []}', InvalidOption),
        ('{"enable_thinking": true}', ConflictingOptions),
    ],
)
def test_template_kwargs_that_clash_are_refused(text, error):
    with pytest.raises(error, match="chat_template_kwargs_json"):
        small_frontend().prepare(chat("hi", chat_template_kwargs_json=text, enable_thinking=False))


def test_effort_and_toggle_may_not_contradict_each_other():
    with pytest.raises(ConflictingOptions):
        small_frontend().prepare(
            chat("hi", enable_thinking=True, reasoning_effort=ReasoningEffort.NONE)
        )


@pytest.mark.parametrize(
    "message",
    [
        Message(Role.ASSISTANT, "", tool_calls=(ToolCall("a", "[1]"),)),
        Message(Role.ASSISTANT, "", tool_calls=(ToolCall("a", "{"),)),
        Message(Role.USER, "", tool_calls=(ToolCall("a", "{}"),)),
    ],
)
def test_calls_in_the_history_must_be_calls(message):
    with pytest.raises(InvalidPrompt, match=r"prompt\.messages\[1\]"):
        small_frontend().prepare(ChatPrompt((Message(Role.USER, "a"), message)))


@pytest.mark.parametrize("source", [QWEN_STYLE, PLAIN_STYLE, bundled_template()])
def test_a_developer_speaks_as_the_system_where_the_template_knows_only_that(source):
    messages = (Message(Role.DEVELOPER, "be brief"), Message(Role.USER, "hi"))
    text = rendered(small_frontend(source), ChatPrompt(messages))
    assert text.startswith("<|im_start|>system\nbe brief<|im_end|>\n")


def test_a_conversation_needs_a_message():
    with pytest.raises(InvalidPrompt, match="no messages"):
        small_frontend().prepare(ChatPrompt(()))


@pytest.mark.parametrize(
    "tools",
    [
        (declared("a"), declared("a")),
        (declared("b"), declared("")),
        (declared("b"), ToolDeclaration("a", "{")),
    ],
)
def test_declarations_are_refused_with_their_place(tools):
    with pytest.raises(InvalidToolConstraint, match=r"^/1: "):
        small_frontend().prepare(chat("hi", tools=tools))
