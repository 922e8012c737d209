"""Every failure on its way to a client: status, code, field and message, before any protocol.

The table from error kinds to statuses stands here once; protocols only dress it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ninfer.contract import (
    CONSTRAINT_ERRORS,
    ConflictingOptions,
    ConstraintDeadEnd,
    ContextLengthExceeded,
    EngineUnavailable,
    InvalidPrompt,
    InvalidToolConstraint,
    JsonPointer,
    NInferError,
    OptionPath,
    Overloaded,
    QueueTimeout,
    RequestCancelled,
    RequestError,
    TextOffset,
    TextPosition,
)

STATUS_CLIENT_GONE = 499
_MESSAGES = "prompt.messages"

_STATUSES: tuple[tuple[type[NInferError], int], ...] = (
    (RequestCancelled, STATUS_CLIENT_GONE),
    (RequestError, 400),
    (Overloaded, 429),
    (QueueTimeout, 503),
    (ConstraintDeadEnd, 400),
    (EngineUnavailable, 503),
    (NInferError, 500),
)


class WireError(Exception):
    """A request the gateway itself refuses; ``param`` is the offending field."""

    def __init__(
        self, fact: str, *, param: str | None = None, code: str = "invalid_value", status: int = 400
    ) -> None:
        super().__init__(fact)
        self.fact = fact
        self.param = param
        self.code = code
        self.status = status


class ToolField(NamedTuple):
    """A declared tool's name and the field of its parameter schema."""

    name: str
    parameters: str


@dataclass(frozen=True, slots=True)
class Fields:
    """Where a protocol's request holds what the contract calls by its own names.

    ``constraint`` is the field with the schema, grammar, regex or choice; ``options`` maps option
    names to fields. ``messages`` are the fields that the prompt's messages came from, ``tools``
    the declared tools, both in the prompt's order.
    """

    constraint: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    messages: tuple[str, ...] = ()
    tools: tuple[ToolField, ...] = ()


class Failure(NamedTuple):
    """What a client is told, in no protocol yet."""

    status: int
    code: str | None
    message: str
    param: str | None = None


def describe(error: Exception, fields: Fields) -> Failure:
    """Return what to tell the client about an error."""
    if isinstance(error, WireError):
        message = f"{error.param}: {error.fact}" if error.param else error.fact
        return Failure(error.status, error.code, message, error.param)
    if not isinstance(error, NInferError):
        return Failure(500, "internal_error", "internal error")
    if isinstance(error, ConflictingOptions):
        return _conflict(error, fields)
    status = next(status for kind, status in _STATUSES if isinstance(error, kind))
    if not isinstance(error, RequestError):
        return Failure(status, error.code, str(error))
    param = _param(error, fields)
    # A position inside a text is no part of the field's name.
    is_inside = isinstance(error.location, (TextPosition, TextOffset))
    place = str(error.location) if is_inside else None
    message = ": ".join(part for part in (param, place, error.fact) if part)
    return Failure(status, error.code, message, param)


def _conflict(error: ConflictingOptions, fields: Fields) -> Failure:
    known = {"constraint": fields.constraint or "constraint", **fields.options}
    named = [known.get(name, name) for name in error.options]
    fact = error.fact.removeprefix(f"{' and '.join(error.options)}: ")
    return Failure(400, error.code, f"{' and '.join(named)}: {fact}", named[-1])


def _tool_place(location: JsonPointer, fields: Fields) -> str:
    # The location is the tool's position in the list of declarations.
    return fields.tools[int(location.tokens[0])].parameters.rpartition(".")[0]


def _param(error: RequestError, fields: Fields) -> str | None:
    base = fields.constraint
    if error.origin.tool is not None:
        base = next(tool.parameters for tool in fields.tools if tool.name == error.origin.tool)
    location = error.location
    if isinstance(error, InvalidToolConstraint) and isinstance(location, JsonPointer):
        return _tool_place(location, fields)
    if isinstance(location, OptionPath):
        return _option_place(error, location, fields)
    if isinstance(location, JsonPointer) and base is not None:
        return f"{base}{location}"
    if isinstance(error, (InvalidPrompt, ContextLengthExceeded)):
        return fields.options.get(_MESSAGES)
    return base if isinstance(error, CONSTRAINT_ERRORS) or error.origin.tool else None


def _option_place(error: RequestError, location: OptionPath, fields: Fields) -> str | None:
    if location.name.startswith("tool_choice"):
        return "tool_choice"
    if location.name == _MESSAGES and location.index is not None:
        return fields.messages[location.index]
    if isinstance(error, CONSTRAINT_ERRORS):
        base = fields.constraint
    else:
        base = fields.options.get(location.name, location.name)
    return None if base is None else str(OptionPath(base, location.index))
