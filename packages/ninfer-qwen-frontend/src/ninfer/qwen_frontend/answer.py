"""What one request's answer is held to, and how its content is published."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ninfer.contract import (
    ConflictingOptions,
    ConstraintKind,
    InvalidContinuation,
    OptionPath,
    OutputConstraint,
    RequestOptions,
)
from ninfer.qwen_frontend.facts import ReasoningMarkers
from ninfer.qwen_frontend.prepared import PreparedPrompt
from ninfer.qwen_frontend.publication import ContentPublisher, PlainContent
from ninfer.qwen_frontend.requirements import require_guaranteed_ending
from ninfer.qwen_frontend.stage_grammar import with_reasoning
from ninfer.qwen_frontend.tool_contract import ReadStrict, ToolContract, select_tools
from ninfer.qwen_frontend.tool_grammar import tool_grammar, tools_or
from ninfer.qwen_frontend.tool_publication import ToolContent
from ninfer.text.compiler import Compiled, ConstraintCompiler, Envelope
from ninfer.text.grammar import Grammar

Compile = Callable[[ConstraintCompiler], Compiled]
_JSON_KINDS = (ConstraintKind.JSON_OBJECT, ConstraintKind.JSON_SCHEMA)


@dataclass(frozen=True, slots=True)
class Answer:
    """How to publish an answer's content, and how to compile its language if it has one."""

    publisher: ContentPublisher
    compile: Compile | None = None


def plan_answer(
    prepared: PreparedPrompt,
    options: RequestOptions,
    markers: ReasoningMarkers | None,
    read_strict: ReadStrict,
) -> Answer:
    """Return what the options ask of an answer to this prompt.

    Raises: InvalidToolConstraint — the tool choice; the errors of strict schemas;
            ConflictingOptions — the constraint with tools, or a guarantee with another option;
            InvalidContinuation — the continued text holds a complete call.
    """
    limit = options.output.tool_name_characters
    contract = select_tools(
        prepared.tools, options.tool_choice, name_limit=limit, read_strict=read_strict
    )
    constraint = options.constraint
    stages = _Stages(markers if prepared.starts_in_reasoning else None)
    if contract is None or (contract.is_forbidding and constraint is not None):
        return _content(prepared, options, stages)
    if constraint is not None and constraint.kind not in _JSON_KINDS:
        raise ConflictingOptions("constraint", "tools", "only JSON can stand beside tools")
    is_bound = contract.is_bound or constraint is not None
    contract = ToolContract(contract.tools, contract.is_required, contract.is_parallel, is_bound)
    publisher = _publisher(prepared, options, contract)
    if not is_bound:
        return Answer(publisher)
    require_guaranteed_ending(options, "tools", is_chat=prepared.is_chat)
    return Answer(publisher, stages.compile_tools(contract, constraint))


def _content(prepared: PreparedPrompt, options: RequestOptions, stages: _Stages) -> Answer:
    publisher = PlainContent(has_text=bool(prepared.continued_text))
    if options.constraint is None:
        return Answer(publisher)
    require_guaranteed_ending(options, "constraint", is_chat=prepared.is_chat)
    return Answer(publisher, stages.compile_content(options.constraint))


def _publisher(
    prepared: PreparedPrompt, options: RequestOptions, contract: ToolContract
) -> ContentPublisher:
    continued = prepared.continued_text or ""
    if contract.is_forbidding or options.output.raw:
        return PlainContent(has_text=bool(continued))
    publisher = ToolContent(
        contract,
        decides_once=options.constraint is not None,
        name_limit=options.output.tool_name_characters,
        prefix=continued,
    )
    if publisher.holds_call:
        raise InvalidContinuation(
            "the final assistant message holds a complete call",
            location=OptionPath("prompt.continuation"),
        )
    return publisher


@dataclass(frozen=True, slots=True)
class _Stages:
    """Thinking in front of a language, where the prompt opens it."""

    markers: ReasoningMarkers | None

    @property
    def identity(self) -> str:
        return "" if self.markers is None else f"thinking{self.markers.canonical_close!r}"

    def wrap(self, grammar: Grammar) -> Grammar:
        return grammar if self.markers is None else with_reasoning(grammar, self.markers)

    def compile_content(self, constraint: OutputConstraint) -> Compile:
        envelope = Envelope(self.identity, self.wrap) if self.markers else None
        return lambda compiler: compiler.compile(constraint, envelope)

    def compile_tools(self, contract: ToolContract, constraint: OutputConstraint | None) -> Compile:
        identity = self.identity + contract.identity
        if constraint is None:
            return lambda compiler: compiler.compile_language(
                identity, lambda: self.wrap(tool_grammar(contract))
            )

        def beside(content: Grammar) -> Grammar:
            # A required call leaves no room for the content, whose schema was still admitted.
            if contract.is_required:
                return self.wrap(tool_grammar(contract))
            return self.wrap(tools_or(content, contract))

        return lambda compiler: compiler.compile(constraint, Envelope(identity, beside))
