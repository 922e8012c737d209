"""Tools as the caller declares them, and how the model may call them.

Source: specification 3.1 and 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class ToolDeclaration:
    """One declared tool.

    ``declaration_json`` is the whole declaration as the template receives it (the OpenAI function
    shape), ``parameters_json`` the source text of the parameter schema, or None when absent.
    """

    name: str
    declaration_json: str
    parameters_json: str | None = None
    strict: bool = False


class ToolMode(Enum):
    """Whether the model may, must or must not call a tool."""

    AUTO = "auto"
    NONE = "none"
    REQUIRED = "required"


class ToolConstraints(Enum):
    """BASIC always binds names and framing; AUTOMATIC binds only what the request asks for."""

    BASIC = "basic"
    AUTOMATIC = "automatic"


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """The calling policy of one request.

    ``allowed_names`` limits calls to a subset (None: every declared tool); ``parallel`` False
    limits them to one.
    """

    mode: ToolMode = ToolMode.AUTO
    allowed_names: tuple[str, ...] | None = None
    parallel: bool = True
    constraints: ToolConstraints = ToolConstraints.BASIC

    @classmethod
    def named(cls, name: str, *, parallel: bool = False) -> ToolChoice:
        """Require a call of one tool; by default exactly one."""
        return cls(ToolMode.REQUIRED, (name,), parallel)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One complete call; ``arguments_json`` is always a JSON object."""

    name: str
    arguments_json: str


class ToolFallback(Enum):
    """Why text that looked like a tool call of a free answer stayed content."""

    NONE = "none"
    MALFORMED_STRUCTURE = "malformed_structure"
    INVALID_TOOL_NAME = "invalid_tool_name"
    UNDECLARED_TOOL = "undeclared_tool"
    TRAILING_CONTENT = "trailing_content"


@dataclass(frozen=True, slots=True)
class ToolCallParse:
    """What the tool parser saw; counts are per request."""

    marker_seen: bool = False
    structured_call_count: int = 0
    empty_arguments_omitted: int = 0
    schema_mismatch_arguments: int = 0
    duplicate_parameters_repaired: int = 0
    fallback_reason: ToolFallback = ToolFallback.NONE
