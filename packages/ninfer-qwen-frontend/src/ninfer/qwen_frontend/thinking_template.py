"""How a chat template begins thinking, found by rendering it once with thinking on and off."""

from __future__ import annotations

from enum import Enum

from ninfer.contract import InvalidPrompt
from ninfer.qwen_frontend.facts import ReasoningMarkers
from ninfer.qwen_frontend.template import ChatTemplate


class ThinkingOpening(Enum):
    """Who writes the opening marker of a thinking answer."""

    NOBODY = "nobody"
    """The answer does not think."""
    TEMPLATE = "template"
    """The generation prompt ends with it."""
    MODEL = "model"
    """The model writes it first, unless the prompt already holds an empty thinking block."""


def thinking_opening(template: ChatTemplate, markers: ReasoningMarkers | None) -> ThinkingOpening:
    """Return how a template begins thinking where it is not turned off.

    Math: on ends with the marker → TEMPLATE; off = on + an empty thinking block → MODEL.
    """
    if markers is None or not template.mentions(markers.open):
        return ThinkingOpening.NOBODY
    try:
        on, off = (_probe(template, options) for options in ({}, {"enable_thinking": False}))
    except InvalidPrompt:
        return ThinkingOpening.NOBODY
    if on.rstrip().endswith(markers.open):
        return ThinkingOpening.TEMPLATE
    block = off.removeprefix(on) if off.startswith(on) else ""
    if "".join(block.split()) == markers.open + markers.close:
        return ThinkingOpening.MODEL
    return ThinkingOpening.NOBODY


def _probe(template: ChatTemplate, options: dict[str, bool]) -> str:
    messages = [{"role": "user", "content": "x"}]
    given = {"messages": messages, "add_generation_prompt": True, "thinking_markers": True}
    return template.render({**given, "tools": None, **options})
