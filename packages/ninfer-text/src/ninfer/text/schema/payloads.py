"""What each keyword may hold: one checking reader for every kind of value.

Knows values, not positions: sub-schemas are read by ``source``.
"""

from __future__ import annotations

from fractions import Fraction

from ninfer.contract.errors import InvalidSchema, UnsupportedSchema
from ninfer.contract.location import JsonPointer
from ninfer.text.json_source import JsonNumber, JsonValue, require_exact, walk
from ninfer.text.schema.numbers import Bound

COUNT_LIMIT = (1 << 31) - 1

TYPES = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})


def types(value: JsonValue, place: JsonPointer) -> frozenset[str]:
    """Return the set of type names."""
    names = value if isinstance(value, list) else [value]
    if not names:
        raise InvalidSchema("the list of types is empty", location=place)
    for name in names:
        if not isinstance(name, str) or name not in TYPES:
            raise InvalidSchema("names no JSON type", location=place)
    found = frozenset(name for name in names if isinstance(name, str))
    if len(found) != len(names):
        raise InvalidSchema("a type is repeated", location=place)
    return found


def count(value: JsonValue, place: JsonPointer) -> int:
    """Return a length or a number of items or members."""
    if isinstance(value, JsonNumber):
        require_exact(value, place)
        if value.is_integral and 0 <= value.exact <= COUNT_LIMIT:
            return int(value.exact)
    raise InvalidSchema(f"is no whole number from 0 to {COUNT_LIMIT}", location=place)


def number(value: JsonValue, place: JsonPointer) -> Fraction:
    """Return a number that reading does not round."""
    if not isinstance(value, JsonNumber):
        raise InvalidSchema("is no number", location=place)
    require_exact(value, place)
    return value.exact


def bound(value: JsonValue, place: JsonPointer) -> Bound:
    """Return a bound of numbers."""
    written = number(value, place)
    digits = value.text.lstrip("-") if isinstance(value, JsonNumber) else ""
    return Bound(written, written if digits.isdigit() else Fraction(float(written)))


def divisor(value: JsonValue, place: JsonPointer) -> Fraction:
    """Return the number that values must be multiples of."""
    found = number(value, place)
    if found <= 0:
        raise InvalidSchema("is not greater than 0", location=place)
    return found


def text(value: JsonValue, place: JsonPointer) -> str:
    """Return a string."""
    if not isinstance(value, str):
        raise InvalidSchema("is no string", location=place)
    return value


def flag(value: JsonValue, place: JsonPointer) -> bool:
    """Return a boolean."""
    if not isinstance(value, bool):
        raise InvalidSchema("is no boolean", location=place)
    return value


def names(value: JsonValue, place: JsonPointer) -> tuple[str, ...]:
    """Return a list of distinct member names."""
    if not isinstance(value, list):
        raise InvalidSchema("is no list of names", location=place)
    found: dict[str, None] = {}
    for index, name in enumerate(value):
        if not isinstance(name, str):
            raise InvalidSchema("is no string", location=place / index)
        if name in found:
            raise InvalidSchema("the name is repeated", location=place / index)
        found[name] = None
    return tuple(found)


def values(value: JsonValue, place: JsonPointer) -> list[JsonValue]:
    """Return the candidates of an enumeration."""
    if not isinstance(value, list):
        raise InvalidSchema("is no list", location=place)
    if not value:
        raise InvalidSchema("the list of values is empty", location=place)
    _require_representable(value, place, "enum")
    return value


def anything(value: JsonValue, place: JsonPointer) -> JsonValue:
    """Return any JSON value whose numbers survive reading."""
    _require_representable(value, place, "const")
    return value


def _require_representable(value: JsonValue, place: JsonPointer, keyword: str) -> None:
    """Refuse numbers that are rounded, and whole ones outside signed 64-bit."""
    for at, item in walk(value, place):
        if isinstance(item, JsonNumber):
            require_exact(item, at)
            if item.is_integral and not -(1 << 63) <= item.exact < 1 << 63:
                fact = f"{item.text} is outside signed 64-bit"
                raise UnsupportedSchema(fact, keyword=keyword, location=at)


def members(value: JsonValue, place: JsonPointer) -> dict[str, JsonValue]:
    """Return an object that maps names to something."""
    if not isinstance(value, dict):
        raise InvalidSchema("is no object", location=place)
    return value


def branches(value: JsonValue, place: JsonPointer) -> list[JsonValue]:
    """Return a list of at least one sub-schema, still unread."""
    if not isinstance(value, list):
        raise InvalidSchema("is no list of schemas", location=place)
    if not value:
        raise InvalidSchema("the list of schemas is empty", location=place)
    return value
