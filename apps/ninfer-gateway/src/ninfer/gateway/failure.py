"""Every failure on its way to a client: status, code, field and message, before any protocol.

The table from error kinds to statuses stands here once; protocols only dress it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ninfer.contract import (
    CONSTRAINT_ERRORS,
    ConflictingOptions,
    ConstraintDeadEnd,
    EngineUnavailable,
    InvalidToolConstraint,
    JsonPointer,
    NInferError,
    OptionPath,
    Overloaded,
    QueueTimeout,
    RequestCancelled,
    RequestError,
)

STATUS_CLIENT_GONE = 499

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
        self, fact: str, *, param: str | None = None, code: str | None = None, status: int = 400
    ) -> None:
        super().__init__(fact)
        self.fact = fact
        self.param = param
        self.code = code
        self.status = status


@dataclass(frozen=True, slots=True)
class Fields:
    """Where a protocol's request holds what the contract calls by its own names.

    ``constraint`` is the field with the schema, grammar, regex or choice; ``options`` maps option
    names to fields, ``tools`` tool names to the fields of their parameter schemas.
    """

    constraint: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    tools: dict[str, str] = field(default_factory=dict)


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
    param = _param(error, fields) if isinstance(error, RequestError) else None
    return Failure(status, error.code, str(error), param)


def _conflict(error: ConflictingOptions, fields: Fields) -> Failure:
    known = {"constraint": fields.constraint or "constraint"} | fields.options
    named = [known.get(name, name) for name in error.options]
    fact = error.fact.removeprefix(f"{' and '.join(error.options)}: ")
    return Failure(400, error.code, f"{' and '.join(named)}: {fact}", named[-1])


def _tool_place(location: JsonPointer, fields: Fields) -> str:
    # The location is the tool's position in the list of declarations.
    schemas = list(fields.tools.values())
    return schemas[int(location.tokens[0])].rpartition(".")[0] if schemas else "tools"


def _param(error: RequestError, fields: Fields) -> str | None:
    base = fields.constraint
    if error.origin.tool is not None:
        base = fields.tools.get(error.origin.tool)
    location = error.location
    if isinstance(error, InvalidToolConstraint) and isinstance(location, JsonPointer):
        return _tool_place(location, fields)
    if isinstance(location, OptionPath):
        if location.name.startswith("tool_choice"):
            return "tool_choice"
        if not isinstance(error, CONSTRAINT_ERRORS):
            base = fields.options.get(location.name, location.name)
        return None if base is None else str(OptionPath(base, location.index))
    if isinstance(location, JsonPointer) and base is not None:
        return f"{base}{location}"
    return base if isinstance(error, CONSTRAINT_ERRORS) or error.origin.tool else None
