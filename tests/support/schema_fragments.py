"""Schemas made of pieces of public ones: real words in combinations that nobody wrote."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "maskbench-dev.jsonl.gz"

_NAMED = ("properties", "patternProperties", "dependentSchemas", "definitions", "$defs")
_SINGLE = (
    "items",
    "additionalProperties",
    "not",
    "contains",
    "propertyNames",
    "if",
    "then",
    "else",
)
_LISTED = ("allOf", "anyOf", "oneOf", "prefixItems")
_BOUND = ('"$ref"', '"$schema"', '"id"', '"$id"', '"format"')
"""What ties a piece to its document, and formats, which the judge does not know."""
_LONGEST = 1_500
_VALUES = (1, "a", None, {}, [], {"x": 1}, [1, 2], "abc", 2.5, True)


def fragments() -> list[dict[str, Any]]:
    """Return every distinct subschema of the public suite that can stand alone."""
    found: dict[str, dict[str, Any]] = {}
    with gzip.open(DATA, "rt") as lines:
        for line in lines:
            for piece in _subschemas(json.loads(line)["schema"]):
                text = json.dumps(piece, sort_keys=True)
                if 4 < len(text) < _LONGEST and not any(word in text for word in _BOUND):
                    found[text] = piece
    return list(found.values())


def _subschemas(schema: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(schema, dict):
        return
    yield schema
    for word, value in schema.items():
        below: list[Any] = []
        if word in _NAMED and isinstance(value, dict):
            below = list(value.values())
        elif word in _LISTED and isinstance(value, list):
            below = value
        elif word in _SINGLE:
            below = [value]
        for piece in below:
            yield from _subschemas(piece)


def recombined(pieces: list[dict[str, Any]], source: random.Random, depth: int = 0) -> Any:
    """Return a random combination of pieces."""
    a = source.choice(pieces)
    if depth < 2 and source.random() < 0.5:
        a = recombined(pieces, source, depth + 1)
    b, c = source.choice(pieces), source.choice(pieces)
    made: list[dict[str, Any]] = [
        {"allOf": [a, b]},
        {"anyOf": [a, b]},
        {"oneOf": [a, b]},
        {"allOf": [b, {"not": a}]},
        {"if": a, "then": b, "else": c},
        {"type": "object", "properties": {"x": a}, "additionalProperties": b},
        {"type": "array", "items": a, "contains": b, "maxItems": 4},
        {"type": "array", "prefixItems": [a, b], "items": c},
        {
            "type": "object",
            "properties": {"x": a, "y": b},
            "required": ["x"],
            "dependentSchemas": {"y": c},
        },
        {"patternProperties": {"^x": a, "y$": b}, "additionalProperties": c},
        {"allOf": [a], "anyOf": [b, c]},
        {**a, **b},
        {
            "$defs": {"a": a, "b": b},
            "allOf": [{"$ref": "#/$defs/a"}, {"anyOf": [{"$ref": "#/$defs/b"}, c]}],
        },
        {"enum": source.sample(_VALUES, 4), "not": a},
        {
            "properties": {"x": a},
            "required": ["x", "z"],
            "minProperties": source.randint(1, 3),
            "maxProperties": source.randint(2, 4),
        },
        {"type": ["object", "array", "string", "integer", "null"], **a},
    ]
    return source.choice(made)
