"""Parameter texts to the JSON arguments of a call, by the tool's contract."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ninfer.contract import IntegrityError, ToolCall, ToolCallParse
from ninfer.qwen_frontend.strict_parameters import StrictParameters
from ninfer.qwen_frontend.tool_call_parser import RawCall
from ninfer.qwen_frontend.tool_contract import Tool
from ninfer.qwen_frontend.tool_values import (
    ITEM_SEPARATOR,
    KEY_SEPARATOR,
    Encoding,
    json_string,
    read_json_value,
)


@dataclass(frozen=True, slots=True)
class DecodedCall:
    """A call with its JSON arguments, and the parse record with its counts added."""

    call: ToolCall
    parse: ToolCallParse


def decode_call(raw: RawCall, tool: Tool, parse: ToolCallParse) -> DecodedCall:
    """Return the call; the last of repeated parameters wins and keeps the first one's place.

    Raises: IntegrityError — a strict call is not what its grammar promised.
    """
    if tool.strict is not None:
        return DecodedCall(_strict_call(raw, tool.strict), _counted(parse))
    last = dict(raw.parameters)
    repaired = len(raw.parameters) - len(last)
    members: dict[str, str] = {}
    omitted = mismatches = 0
    for name, text in last.items():
        value = tool.hints.normalise(name, text)
        if value.json_text is None:
            omitted += 1
            continue
        members[name] = value.json_text
        mismatches += value.is_mismatch
    counted = replace(
        _counted(parse),
        empty_arguments_omitted=parse.empty_arguments_omitted + omitted,
        schema_mismatch_arguments=parse.schema_mismatch_arguments + mismatches,
        duplicate_parameters_repaired=parse.duplicate_parameters_repaired + repaired,
    )
    return DecodedCall(ToolCall(raw.name, _object(members.items())), counted)


def _strict_call(raw: RawCall, strict: StrictParameters) -> ToolCall:
    members: dict[str, str] = {}
    for name, text in raw.parameters:
        encoding = strict.encoding_of(name)
        if encoding is None or name in members:
            raise IntegrityError(f"a strict call of {raw.name!r} has an unexpected {name!r}")
        if encoding is Encoding.RAW:
            members[name] = json_string(text)
        elif read_json_value(text) is not None:
            members[name] = text
        else:
            raise IntegrityError(f"{name!r} of a strict call of {raw.name!r} is not JSON")
    for parameter in strict.parameters:
        if parameter.is_required and parameter.name not in members:
            raise IntegrityError(f"a strict call of {raw.name!r} lacks {parameter.name!r}")
    return ToolCall(raw.name, _object(members.items()))


def _counted(parse: ToolCallParse) -> ToolCallParse:
    return replace(parse, structured_call_count=parse.structured_call_count + 1)


def _object(members: Iterable[tuple[str, str]]) -> str:
    written = (json_string(name) + KEY_SEPARATOR + text for name, text in members)
    return "{" + ITEM_SEPARATOR.join(written) + "}"
