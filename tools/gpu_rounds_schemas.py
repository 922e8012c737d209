"""Schemas as applications write them, with arrays long enough that no answer ends while timed."""

from __future__ import annotations

import json

_ITEMS = 400
_TEXT = {"type": "string"}
_DATE = {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}


def _list_of(**properties: object) -> str:
    item = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    whole = {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "items": {"type": "array", "minItems": _ITEMS, "items": item},
        },
        "required": ["id", "items"],
        "additionalProperties": False,
    }
    return json.dumps(whole)


SCHEMAS = [
    _list_of(name=_TEXT, price={"type": "number"}, count={"type": "integer", "minimum": 0}),
    _list_of(city=_TEXT, country={"enum": ["DE", "FR", "IT", "US"]}, visited={"type": "boolean"}),
    _list_of(date=_DATE, title=_TEXT, tags={"type": "array", "items": _TEXT, "minItems": 1}),
    _list_of(
        role={"enum": ["user", "assistant", "tool"]},
        parts={
            "type": "array",
            "minItems": 1,
            "items": {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {"text": _TEXT},
                        "required": ["text"],
                        "additionalProperties": False,
                    },
                    {
                        "type": "object",
                        "properties": {"call": _TEXT, "arguments": {"type": "object"}},
                        "required": ["call", "arguments"],
                        "additionalProperties": False,
                    },
                ]
            },
        },
    ),
]
"""One of them a row, in turn."""
