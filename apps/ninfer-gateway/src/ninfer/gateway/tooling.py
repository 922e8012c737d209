"""Tool declarations and the calling policy, as the protocols spell them in common."""

from __future__ import annotations

from typing import Literal

import msgspec

from ninfer.contract import ToolCall, ToolChoice, ToolConstraints, ToolDeclaration, ToolMode
from ninfer.gateway.failure import WireError
from ninfer.gateway.wire import raw_text, write_body

ToolConstraintsName = Literal["basic", "auto"]

_MODES = {"auto": ToolMode.AUTO, "none": ToolMode.NONE, "required": ToolMode.REQUIRED}


class FunctionDeclaration(msgspec.Struct):
    """A function as OpenAI declares it; ``parameters`` stays source text."""

    name: str
    description: str | None = None
    parameters: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    strict: bool | None = None


def declare(function: FunctionDeclaration) -> ToolDeclaration:
    """Return a declaration in the shape templates receive, with the schema as it was sent."""
    shape: dict[str, object] = {"name": function.name}
    if function.description is not None:
        shape["description"] = function.description
    parameters = raw_text(function.parameters)
    if parameters is not None:
        shape["parameters"] = function.parameters
    if function.strict is not None:
        shape["strict"] = function.strict
    return ToolDeclaration(
        name=function.name,
        declaration_json=write_body({"type": "function", "function": shape}).decode(),
        parameters_json=parameters,
        strict=bool(function.strict),
    )


def made_call(name: str, arguments: str, place: str) -> ToolCall:
    """Return a call of an earlier turn; ``place`` is the field of its arguments.

    Raises: WireError — the arguments are not a JSON object.
    """
    try:
        msgspec.json.decode(arguments, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        fact = f"the arguments of a call of {name!r} are not a JSON object"
        raise WireError(fact, param=place, code="invalid_tool_history") from None
    return ToolCall(name, arguments)


def tool_mode(word: str, field: str) -> ToolMode:
    """Return the mode of ``auto``, ``none`` or ``required``.

    Raises: WireError — it is another word.
    """
    if word not in _MODES:
        raise WireError(f"{word!r} is not one of {', '.join(_MODES)}", param=field)
    return _MODES[word]


def tool_policy(
    mode: ToolMode,
    allowed_names: tuple[str, ...] | None,
    *,
    parallel: bool | None,
    constraints: ToolConstraintsName | None,
) -> ToolChoice:
    """Return the calling policy of a request; parallel calls are allowed by default."""
    enforced = ToolConstraints.AUTOMATIC if constraints == "auto" else ToolConstraints.BASIC
    return ToolChoice(mode, allowed_names, parallel is not False, enforced)
