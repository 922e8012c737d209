"""What one request's answer is held to, and how its content is published."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ninfer.contract import (
    OptionPath,
    RequestOptions,
    ToolMode,
    UnsupportedOption,
)
from ninfer.qwen_frontend.facts import ReasoningMarkers
from ninfer.qwen_frontend.prepared import PreparedPrompt
from ninfer.qwen_frontend.publication import ContentPublisher, PlainContent
from ninfer.qwen_frontend.requirements import require_guaranteed_ending
from ninfer.qwen_frontend.stage_grammar import with_reasoning
from ninfer.text.compiler import Compiled, ConstraintCompiler, Envelope
from ninfer.text.grammar import Grammar

Compile = Callable[[ConstraintCompiler], Compiled]


@dataclass(frozen=True, slots=True)
class Answer:
    """How to publish an answer's content, and how to compile its language if it has one."""

    publisher: ContentPublisher
    compile: Compile | None = None


def plan_answer(
    prepared: PreparedPrompt, options: RequestOptions, markers: ReasoningMarkers | None
) -> Answer:
    """Return what the options ask of an answer to this prompt.

    Raises: ConflictingOptions, InvalidToolConstraint, UnsupportedOption.
    """
    publisher = PlainContent(has_text=bool(prepared.continued_text))
    if prepared.tools and options.tool_choice.mode is not ToolMode.NONE:
        raise UnsupportedOption("tools are not served yet", location=OptionPath("tool_choice"))
    constraint = options.constraint
    if constraint is None:
        return Answer(publisher)
    require_guaranteed_ending(options, "constraint", is_chat=prepared.is_chat)
    envelope = _reasoning(markers) if prepared.starts_in_reasoning else None
    return Answer(publisher, lambda compiler: compiler.compile(constraint, envelope))


def _reasoning(markers: ReasoningMarkers | None) -> Envelope | None:
    if markers is None:
        return None

    def wrap(grammar: Grammar) -> Grammar:
        return with_reasoning(grammar, markers)

    return Envelope("reasoning", wrap)
