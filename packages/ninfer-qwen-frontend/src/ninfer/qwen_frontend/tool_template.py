"""Which template shows tools to a model."""

from __future__ import annotations

from importlib.resources import files

from ninfer.qwen_frontend.facts import ModelFacts

_CHATML_MARK = "<|im_start|>"


def tool_template_source(facts: ModelFacts) -> str | None:
    """Return the template for requests with tools, where the model's own shows none.

    A ChatML model without one gets the bundled template, because the tool language is fixed and the
    turn layout is the same; any other model has none.
    """
    own = facts.chat_template or ""
    if "tools" in own:
        return own
    if facts.tool_template is not None:
        return facts.tool_template
    return bundled_template() if _CHATML_MARK in own else None


def bundled_template() -> str:
    """Return the bundled ChatML template with thinking toggle and tools."""
    return (files("ninfer.qwen_frontend") / "chatml.jinja").read_text(encoding="utf-8")
