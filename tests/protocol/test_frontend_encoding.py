"""Prompts that are too long or too deep: they cost nobody else's time, and are refused."""

import threading
import time

import pytest

from ninfer.contract import (
    ChatPrompt,
    InvalidOption,
    InvalidPrompt,
    InvalidToolConstraint,
    Message,
    Role,
    TextPrompt,
    ToolCall,
    ToolDeclaration,
)
from ninfer.qwen_frontend.tool_hints import ParameterHints, read_hints
from support.templates import chat, small_frontend


def test_other_threads_run_while_a_long_prompt_is_encoded():
    frontend = small_frontend()
    prompt = TextPrompt("hello world " * 50_000)
    span: list[float] = []

    def prepare() -> None:
        span.append(time.perf_counter())
        frontend.prepare(prompt)
        span.append(time.perf_counter())

    thread = threading.Thread(target=prepare)
    thread.start()
    looks = []
    while thread.is_alive():
        looks.append(time.perf_counter())
        time.sleep(0.001)
    thread.join()
    inside = [look for look in looks if span[0] < look < span[1]]
    assert len(inside) > 20


DEEP = '{"a":' * 5000 + "1" + "}" * 5000
CONSTANT = '{"a":NaN}'


def calling(arguments: str) -> ChatPrompt:
    call = ToolCall("f", arguments)
    return ChatPrompt((Message(Role.USER, "x"), Message(Role.ASSISTANT, "", None, (call,))))


@pytest.mark.parametrize("text", [DEEP, CONSTANT], ids=["deep", "constant"])
def test_json_text_that_cannot_be_read_is_refused_wherever_it_stands(text):
    frontend = small_frontend()
    tool = ToolDeclaration("f", text, text)
    with pytest.raises(InvalidPrompt, match="are not a JSON object"):
        frontend.prepare(calling(text))
    with pytest.raises(InvalidOption, match="not JSON"):
        frontend.prepare(chat("x", chat_template_kwargs_json=text))
    with pytest.raises(InvalidToolConstraint, match="not JSON"):
        frontend.prepare(chat("x", tools=(tool,)))


def test_parameters_that_cannot_be_read_give_no_hints():
    assert read_hints(DEEP) == ParameterHints()
