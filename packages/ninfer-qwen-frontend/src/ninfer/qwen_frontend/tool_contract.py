"""Which tools one answer may call, and what binds the calls.

The declarations and the choice are read once; grammar and parser are made from the result.
Source: specification 4.3; reference contract section 4.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ninfer.contract import (
    InvalidToolConstraint,
    JsonPointer,
    OptionPath,
    ToolChoice,
    ToolConstraints,
    ToolDeclaration,
    ToolMode,
)
from ninfer.qwen_frontend.strict_parameters import StrictParameters, strict_parameters
from ninfer.qwen_frontend.tool_hints import ParameterHints, read_hints

ReadStrict = Callable[[ToolDeclaration], StrictParameters]
_NAME = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Tool:
    """One callable tool; without ``strict`` parameters it has hints only."""

    name: str
    hints: ParameterHints
    strict: StrictParameters | None = None


@dataclass(frozen=True, slots=True)
class ToolContract:
    """What a request asks of calls.

    ``is_bound`` says that a grammar enforces it. Without tools, no call may be written at all.
    """

    tools: tuple[Tool, ...]
    is_required: bool
    is_parallel: bool
    is_bound: bool

    @property
    def is_forbidding(self) -> bool:
        """Return whether the answer may hold no call."""
        return not self.tools

    @property
    def identity(self) -> str:
        """Return what equal tool languages share; hints are no part of a language."""
        tools = [(tool.name, tool.strict and tool.strict.identity) for tool in self.tools]
        return repr(("tools", tools, self.is_required, self.is_parallel))


def is_tool_name(name: str, limit: int) -> bool:
    """Return whether a name can stand in a call's framing."""
    return len(name) <= limit and _NAME.fullmatch(name) is not None


def select_tools(
    declared: Sequence[ToolDeclaration],
    choice: ToolChoice,
    *,
    name_limit: int,
    read_strict: ReadStrict = strict_parameters,
) -> ToolContract | None:
    """Return the contract of an answer, or None where nothing was declared.

    Raises: InvalidToolConstraint — the choice names an undeclared tool, requires a call without a
            tool, or a name cannot be written; UnsupportedSchema and its kin — strict parameters.
    """
    allowed = _allowed(declared, choice)
    if choice.mode is ToolMode.REQUIRED and not allowed:
        raise InvalidToolConstraint(
            "a call is required, but no tool may be called", location=OptionPath("tool_choice")
        )
    if not declared:
        return None
    if choice.mode is ToolMode.NONE:
        allowed = []
    tools = tuple(_tool(index, tool, name_limit, read_strict) for index, tool in allowed)
    is_bound = (
        not tools
        or choice.constraints is ToolConstraints.BASIC
        or choice.mode is ToolMode.REQUIRED
        or choice.allowed_names is not None
        or not choice.parallel
        or any(tool.strict is not None for tool in tools)
    )
    return ToolContract(tools, choice.mode is ToolMode.REQUIRED, choice.parallel, is_bound)


def _allowed(
    declared: Sequence[ToolDeclaration], choice: ToolChoice
) -> list[tuple[int, ToolDeclaration]]:
    numbered = list(enumerate(declared))
    if choice.allowed_names is None:
        return numbered
    names = {tool.name for tool in declared}
    for index, name in enumerate(choice.allowed_names):
        if name not in names:
            raise InvalidToolConstraint(
                f"{name!r} is not declared", location=OptionPath("tool_choice.allowed_names", index)
            )
    return [(index, tool) for index, tool in numbered if tool.name in choice.allowed_names]


def _tool(
    index: int, declaration: ToolDeclaration, name_limit: int, read_strict: ReadStrict
) -> Tool:
    name = declaration.name
    if not is_tool_name(name, name_limit):
        raise InvalidToolConstraint(
            f"{name!r} is not a name of at most {name_limit} letters, digits, '_' and '-'",
            location=JsonPointer() / index,
        )
    strict = read_strict(declaration) if declaration.strict else None
    return Tool(name, read_hints(declaration.parameters_json), strict)
