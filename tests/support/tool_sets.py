"""Random strict tools, random answers inside their language, and an independent re-encoder."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from ninfer.contract import ToolDeclaration

_NAMES = ("city", "days", "opts", "unit", "a-b", "x.y", "naïve", "上", "note", "list")
_TEXTS = (
    "C",
    "F",
    " padded ",
    "line\nbreak",
    "</parameter>",
    '"quoted"',
    "",
    "上海",
    "\n",
    "a" * 30,
)


def strict_tool(name: str, schema: dict[str, Any] | None, **changes: Any) -> ToolDeclaration:
    """Return a strict declaration in the OpenAI function shape."""
    function = {"name": name, "strict": True} | ({} if schema is None else {"parameters": schema})
    text = json.dumps({"type": "function", "function": function}, ensure_ascii=False)
    parameters = None if schema is None else json.dumps(schema, ensure_ascii=False)
    return ToolDeclaration(name, text, parameters, **({"strict": True} | changes))


def random_tool_set(seed: int) -> tuple[ToolDeclaration, ...]:
    """Return one to three strict tools; equal seeds give equal tools."""
    source = random.Random(seed)
    count = source.randint(1, 3)
    return tuple(strict_tool(f"tool_{i}", random_parameters(source)) for i in range(count))


def random_parameters(source: random.Random) -> dict[str, Any]:
    """Return the schema of a closed object with up to four parameters."""
    names = source.sample(_NAMES, source.randint(0, 4))
    properties = {name: _random_schema(source, 0) for name in names}
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in names if source.random() < 0.6],
        "additionalProperties": False,
    }


def _random_schema(source: random.Random, depth: int) -> dict[str, Any]:
    makers = [_text, _text, _whole, _number, _flag, _listed]
    makers += [_array, _object] if depth < 2 else []
    return source.choice(makers)(source, depth)


def _text(source: random.Random, depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    if source.random() < 0.3:
        schema["pattern"] = source.choice(
            ("^[a-z]+$", "^\\d{2}-\\d{2}$", "[\\n<]", "^.{0,9}$", "/p")
        )
    if source.random() < 0.3:
        schema["maxLength"] = source.randint(6, 20)
    if source.random() < 0.2:
        schema["minLength"] = source.randint(0, 5)
    return schema


def _whole(source: random.Random, depth: int) -> dict[str, Any]:
    low = source.randint(-20, 20)
    return {"type": "integer", "minimum": low, "maximum": low + source.randint(0, 200)}


def _number(source: random.Random, depth: int) -> dict[str, Any]:
    return {"type": source.choice(("number", ["number", "null"]))}


def _flag(source: random.Random, depth: int) -> dict[str, Any]:
    return {"type": "boolean"}


def _listed(source: random.Random, depth: int) -> dict[str, Any]:
    if source.random() < 0.5:
        return {"enum": source.sample(_TEXTS, source.randint(1, 4))}
    return {"enum": [1, None, True, {"k": [1, "v"]}, [2, 3]][: source.randint(1, 5)]}


def _array(source: random.Random, depth: int) -> dict[str, Any]:
    items = _random_schema(source, depth + 1)
    return {"type": "array", "items": items, "maxItems": source.randint(1, 3)}


def _object(source: random.Random, depth: int) -> dict[str, Any]:
    names = source.sample(_NAMES, source.randint(0, 2))
    return {
        "type": "object",
        "properties": {name: _random_schema(source, depth + 1) for name in names},
        "required": names[:1],
        "additionalProperties": False,
    }


def reencoded(name: str, arguments_json: str, schema: dict[str, Any]) -> str:
    """Return the call that a reader of the arguments would write; shares no code with the parser.

    A value is written raw where its schema admits strings, otherwise as its JSON text stands.
    """
    written = "".join(
        f"<parameter={key}>\n{_value(text, schema['properties'][key])}\n</parameter>\n"
        for key, text in members(arguments_json)
    )
    return f"<tool_call>\n<function={name}>\n{written}</function>\n</tool_call>"


def members(text: str) -> Iterator[tuple[str, str]]:
    """Yield the members of a JSON object with the source text of each value."""
    decoder = json.JSONDecoder()
    at = 1
    while text[at] != "}":
        key, at = decoder.raw_decode(text, at)
        assert text[at : at + 2] == ": "
        _, end = decoder.raw_decode(text, at + 2)
        yield key, text[at + 2 : end]
        at = end + 2 if text[end] == "," else end
    assert at == len(text) - 1


def _value(text: str, schema: dict[str, Any]) -> str:
    value = json.loads(text)
    is_raw = schema.get("type") == "string" or (
        "enum" in schema and all(isinstance(item, str) for item in schema["enum"])
    )
    return value if is_raw else text
