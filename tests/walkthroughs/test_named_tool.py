"""Specification 13.6: one named strict tool, its values carried byte for byte."""

from __future__ import annotations

import json

import pytest

from ninfer.contract import ConstraintBranch, RequestError, ToolChoice, ToolDeclaration
from support.engines import run_until_idle
from support.templates import chat, small_frontend
from support.walkthroughs import asking, engine_saying


def lookup(city: dict[str, object]) -> ToolDeclaration:
    parameters = {
        "type": "object",
        "properties": {"city": city, "days": {"type": "integer"}},
        "required": ["city", "days"],
        "additionalProperties": False,
    }
    function = {"name": "lookup", "parameters": parameters, "strict": True}
    return ToolDeclaration(
        "lookup",
        json.dumps({"type": "function", "function": function}),
        json.dumps(parameters),
        strict=True,
    )


@pytest.mark.parametrize(
    "city", ["上海", "  two  blanks ", "line one\nline two", 'x = "</parameter>"']
)
def test_the_value_between_the_framing_newlines_is_the_argument(city: str) -> None:
    prompt = chat("Weather?", tools=(lookup({"type": "string"}),), enable_thinking=False)
    prompt_tokens = len(small_frontend().prepare(prompt).token_ids)
    wish = (
        f"<tool_call>\n<function=lookup>\n<parameter=city>\n{city}\n</parameter>\n"
        "<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>"
    )
    engine = engine_saying(wish, prompt_tokens)
    handle = engine.start(prompt, asking(tool_choice=ToolChoice.named("lookup")))
    run_until_idle(engine)
    result = handle.wait(timeout=0)
    (call,) = result.output.tool_calls
    assert call.name == "lookup"
    assert json.loads(call.arguments_json) == {"city": city, "days": 3}
    assert result.content == ""
    assert result.constraint is not None
    assert result.constraint.branch is ConstraintBranch.TOOLS


def test_a_value_that_the_framing_cannot_carry_is_refused_before_anything_runs() -> None:
    tool = lookup({"const": "a\n</parameter>"})
    prompt = chat("Weather?", tools=(tool,), enable_thinking=False)
    engine = engine_saying("", 0)
    with pytest.raises(RequestError) as caught:
        engine.start(prompt, asking(tool_choice=ToolChoice.named("lookup")))
    assert caught.value.origin.tool == "lookup"
    assert str(caught.value.location).startswith("/properties/city")
    assert engine.is_idle
