"""Finds the final assistant text inside a rendered prompt, exactly or not at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ninfer.contract import InvalidContinuation, Message, OptionPath, Role
from ninfer.qwen_frontend.facts import ReasoningMarkers

Render = Callable[[Sequence[Message], bool], str]
"""Renders messages; the flag adds the generation prompt."""


class _Frame(NamedTuple):
    before: str
    after: str


def continued_prompt(
    messages: Sequence[Message],
    render: Render,
    *,
    marks: Sequence[str],
    reasoning: ReasoningMarkers | None,
) -> str:
    """Return the prompt that ends with the final assistant text.

    Math:   two renderings with other texts in its place give the frame before and after the text;
            frame + text must be the real rendering, what follows must begin with one of ``marks``
            (the texts of control tokens) or be empty, and what precedes must be a generation prompt
            up to a finished thinking block.
    Raises: InvalidContinuation — the last message is not plain assistant text, or the template
            changes or wraps it.
    Source: specification 5.3.
    """
    final = final_text(messages)
    frame = _frame(messages, render)
    if render(messages, False) != frame.before + final + frame.after:
        raise _refused("the template changes the text of the final assistant message")
    if frame.after.strip() and not frame.after.startswith(tuple(m for m in marks if m)):
        raise _refused("the template writes more behind the final assistant message")
    opening = _without_thinking(render(messages[:-1], True), reasoning)
    if _without_thinking(frame.before, reasoning) != opening:
        raise _refused("the template writes more in front of the final assistant message")
    return frame.before + final


def final_text(messages: Sequence[Message]) -> str:
    """Return the text to continue.

    Raises: InvalidContinuation — the last message is not plain assistant text.
    """
    if not messages or messages[-1].role is not Role.ASSISTANT:
        raise _refused("the last message is not the assistant's")
    final = messages[-1]
    if final.tool_calls or final.reasoning:
        raise _refused("the final assistant message is not plain text")
    return final.content


def _frame(messages: Sequence[Message], render: Render) -> _Frame:
    conversation = "\n".join(message.content for message in messages)
    frames = set()
    for probe in _probes(conversation):
        marked = [*messages[:-1], replace(messages[-1], content=probe)]
        before, found, after = render(marked, False).partition(probe)
        if not found or probe in after:
            raise _refused("the template does not write the final assistant message once")
        frames.add(_Frame(before, after))
    if len(frames) != 1:
        raise _refused("what the template writes around a text depends on the text")
    return frames.pop()


def _probes(conversation: str) -> list[str]:
    probes: list[str] = []
    number = 0
    while len(probes) < 2:
        number += 1
        if (probe := f"probe{number}x{number * 7919}") not in conversation:
            probes.append(probe)
    return probes


def _without_thinking(text: str, reasoning: ReasoningMarkers | None) -> str:
    if reasoning is None:
        return text
    block = f"{re.escape(reasoning.open)}\\s*{re.escape(reasoning.close)}\\s*$"
    return re.sub(block, "", text)


def _refused(fact: str) -> InvalidContinuation:
    return InvalidContinuation(fact, location=OptionPath("prompt.continuation"))
