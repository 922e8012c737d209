"""The parts that schemas made to explode are put together from."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from support.heavy import regexes

TYPES = ("string", "integer", "number", "boolean", "null", "array", "object")
COUNTS = (0, 1, 2, 5, 16, 64, 255, 1_000, 8_192, 32_767, 100_000, 10**9)
NUMBERS = (
    "0",
    "1",
    "-1",
    "0.1",
    "1e300",
    "-1e-300",
    "9223372036854775807",
    "123456789.123",
    "1e17",
)
FORMATS = ("date-time", "date", "time", "email", "hostname", "ipv4", "ipv6", "uri", "uuid")


def any_name(source: Random) -> str:
    """Return a short name."""
    return "".join(source.choices('abcdefgh_éq"', k=source.randint(1, 9)))


def measured(source: Random, size: int, make: Callable[[int], Any]) -> list[Any]:
    """Return parts until they fill the size."""
    parts, length = [], 0
    while length < size:
        parts.append(make(len(parts)))
        length += len(json.dumps(parts[-1], ensure_ascii=False).encode()) + 2
    return parts


def string(source: Random) -> dict[str, Any]:
    """Return a string with any of its bounds."""
    schema: dict[str, Any] = {"type": "string"}
    if source.random() < 0.5:
        pattern = source.choice(list(regexes.FAMILIES.values()))(source, source.choice((4, 20, 60)))
        schema["pattern"] = source.choice((pattern, f"^({pattern})$", f"^{pattern}"))
    if source.random() < 0.5:
        schema["minLength"] = source.choice(COUNTS)
    if source.random() < 0.5:
        schema["maxLength"] = source.choice(COUNTS)
    if source.random() < 0.2:
        schema["format"] = source.choice(FORMATS)
    return schema


def number(source: Random) -> dict[str, Any]:
    """Return a number with any of its bounds, mostly some that hold together."""
    schema: dict[str, Any] = {"type": source.choice(("integer", "number"))}
    if source.random() < 0.2:
        for word in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"):
            if source.random() < 0.4:
                schema[word] = json.loads(source.choice(NUMBERS))
        return schema
    low, high = sorted(source.choices((-1e9, -7, -0.5, 0, 0.125, 1, 17.25, 1e6, 123456789), k=2))
    schema |= {"minimum": low} if source.random() < 0.6 else {}
    schema |= {source.choice(("maximum", "exclusiveMaximum")): high + source.randrange(9)}
    if schema["type"] == "integer" and source.random() < 0.3:
        schema["multipleOf"] = source.choice((2, 3, 7, 100, 997))
    return schema


def values(source: Random, room: int) -> list[Any]:
    """Return JSON values of any kind."""
    scalars = (
        None,
        True,
        0,
        -5,
        1.5,
        "a",
        "b\n",
        any_name(source),
        [1, "x"],
        {"a": 1, "b": [None]},
    )
    return measured(source, min(room, source.choice((20, 500))), lambda _: source.choice(scalars))


def mixed(source: Random, room: int, depth: int) -> Any:
    """Return any schema of about so many characters."""
    if room < 40 or depth > 20:
        leaves = (string, number, lambda s: {"enum": values(s, 40)}, lambda s: {}, lambda s: True)
        return source.choice(leaves)(source)
    several = source.randint(1, 6)
    parts = [mixed(source, max(0, room - 40) // several, depth + 1) for _ in range(several)]
    match source.randrange(11):
        case 0 | 1 | 2 | 3:
            return _object(source, parts)
        case 4 | 5:
            return _array(source, parts)
        case 6:
            return {source.choice(("anyOf", "anyOf", "oneOf")): parts}
        case 7:
            return {"allOf": parts[:2]}
        case 8:
            return {"if": parts[0], "then": parts[-1]} if source.random() < 0.5 else parts[0]
        case 9:
            return {"$ref": f"#/$defs/d{source.randrange(8)}"}
        case _:
            return {"enum": values(source, room)} if source.random() < 0.7 else {"not": parts[0]}


def _object(source: Random, parts: list[Any]) -> dict[str, Any]:
    names = [any_name(source) for _ in parts]
    properties = dict(zip(names, parts, strict=True))
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if source.random() < 0.5:
        schema["required"] = sorted(set(source.sample(names, source.randint(0, len(names)))))
    for word in ("minProperties", "maxProperties"):
        if source.random() < 0.1:
            schema[word] = source.randint(0, 9)
    further: tuple[dict[str, Any], ...] = (
        {},
        {},
        {"additionalProperties": False},
        {"additionalProperties": parts[0]},
        {"patternProperties": {regexes.mixture(source, 12): parts[0]}},
        {"propertyNames": string(source)},
        {"dependentRequired": {names[0]: [names[-1]]}},
        {"dependentSchemas": {names[0]: parts[-1]}},
    )
    return schema | source.choice(further)


def _array(source: Random, parts: list[Any]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array", "items": parts[0]}
    if source.random() < 0.4:
        schema["prefixItems"] = parts
    low, high = sorted(source.choices(COUNTS, k=2))
    if source.random() < 0.4:
        schema["minItems"] = low
    if source.random() < 0.4:
        schema["maxItems"] = high
    if source.random() < 0.2:
        schema |= {"contains": parts[-1], "minContains": source.randint(0, 40)}
    if source.random() < 0.1:
        schema["uniqueItems"] = True
    return schema
