"""One codec for parameter values: text between the framing line breaks, and JSON.

Grammar and parser are both built on it, so that neither reads a value differently.
"""

from __future__ import annotations

import json
import math
from enum import Enum
from typing import Any, NamedTuple, NoReturn

VALUE_CLOSING = "\n</parameter>"
"""Ends a value; the one text that no value can hold."""


class Encoding(Enum):
    """How one strict parameter is written between its framing line breaks."""

    RAW = "raw"
    """The string itself, nothing escaped."""
    JSON = "json"
    """A JSON value with the template's separators."""


ITEM_SEPARATOR = ", "
KEY_SEPARATOR = ": "


def is_representable(text: str) -> bool:
    """Return whether a raw value can be told from its closing."""
    return VALUE_CLOSING not in text


def json_string(text: str) -> str:
    """Return a text as a JSON string."""
    return json.dumps(text, ensure_ascii=False)


def json_text(value: Any) -> str:
    """Return a value as the template's ``tojson`` writes it."""
    return json.dumps(
        value, ensure_ascii=False, separators=(ITEM_SEPARATOR, KEY_SEPARATOR), allow_nan=False
    )


class JsonRead(NamedTuple):
    """A JSON text that was read, and its type's schema name."""

    value: Any
    type_name: str


def read_json_value(text: str) -> JsonRead | None:
    """Return what a JSON text means, or None where it is not JSON or not publishable.

    Numbers beyond binary64 and lone surrogates are not publishable.
    """
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return JsonRead(value, _type_name(value))


def _refuse(text: str) -> NoReturn:
    raise ValueError(text)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _type_name(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"
