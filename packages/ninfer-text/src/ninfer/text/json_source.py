"""JSON text as an ordered tree of plain values whose numbers keep their source text.

Knows RFC 8259 and where things stand; does not know what a schema is. Every error has a place:
line and column for syntax, a JSON Pointer for what is syntactically right and still refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from json.encoder import encode_basestring
from typing import NoReturn, TypeAlias

from ninfer.contract.errors import InvalidSchema, UnsupportedSchema
from ninfer.contract.location import JsonPointer, TextPosition

DEPTH_LIMIT = 256
"""How many arrays and objects may stand inside each other."""

_INT64 = range(-(1 << 63), 1 << 63)


class JsonNumber:
    """A number as it was written; equal numbers are equal whatever their spelling."""

    __slots__ = ("__dict__", "text")

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def exact(self) -> Fraction:
        """Return the exact value; ask ``is_rounded`` first, exponents are not bounded."""
        return Fraction(self.text)

    @property
    def is_integral(self) -> bool:
        """Return whether the value is a whole number, as ``1.0`` and ``1e2`` are."""
        return self.exact.denominator == 1

    @cached_property
    def is_rounded(self) -> bool:
        """Return whether reading the number changes it.

        Math: exact within signed 64-bit; else the value must equal the shortest, or the 17-digit,
              decimal of the binary64 nearest to it.
        """
        if len(self.text) < 20 and self.text.lstrip("-").isdigit():
            return int(self.text) not in _INT64 and not self._reads_back()
        return not self._reads_back()

    def _reads_back(self) -> bool:
        read = float(self.text)
        if read in (float("inf"), float("-inf")):
            return False
        with localcontext(Context(prec=len(self.text) + 40)):
            written = Decimal(self.text)
            if written == written.to_integral_value() and abs(written) < 1 << 64:
                return int(written) in _INT64 or int(written) >= 0
            return written in (Decimal(repr(read)), Decimal(f"{read:.17g}"))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, JsonNumber):
            return NotImplemented
        return self.text == other.text or self.exact == other.exact

    def __hash__(self) -> int:
        return hash(self.exact)

    def __repr__(self) -> str:
        return f"JsonNumber({self.text!r})"


JsonValue: TypeAlias = "bool | JsonNumber | str | list[JsonValue] | dict[str, JsonValue] | None"


class _Repeating(dict[str, "JsonValue"]):
    """An object that was written with a repeated key."""

    __slots__ = ("key",)
    key: str


@dataclass(slots=True)
class _Reader:
    """Hooks of one read."""

    repeats: bool = False

    def collect(self, pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
        members = dict(pairs)
        if len(members) == len(pairs):
            return members
        seen: set[str] = set()
        repeated = _Repeating(members)
        repeated.key = next(k for k, _ in pairs if k in seen or seen.add(k))  # type: ignore[func-returns-value]
        self.repeats = True
        return repeated


def read_json(source: str) -> JsonValue:
    """Read one JSON text, keeping member order and number spelling.

    Raises: InvalidSchema — not JSON (line and column), a repeated key, a lone surrogate (pointer);
            UnsupportedSchema — nested over ``DEPTH_LIMIT`` (line and column).
    """
    _require_unicode(source)
    _require_depth(source)
    reader = _Reader()
    decoder = json.JSONDecoder(
        object_pairs_hook=reader.collect,
        parse_float=JsonNumber,
        parse_int=JsonNumber,
        parse_constant=_refuse_constant,
    )
    try:
        value: JsonValue = decoder.decode(source)
    except json.JSONDecodeError as error:
        place = TextPosition(error.lineno, error.colno)
        raise InvalidSchema(f"not JSON: {error.msg}", location=place) from None
    except _Constant as constant:
        offset = _constant_offset(source, str(constant))
        place = TextPosition.of_offset(source, offset)
        raise InvalidSchema(f"not JSON: {constant} is no JSON value", location=place) from None
    if reader.repeats:
        _refuse_repeat(value)
    if _SURROGATE_ESCAPE.search(source):
        _refuse_surrogates(value)
    return value


def walk(value: JsonValue, pointer: JsonPointer) -> Iterator[tuple[JsonPointer, JsonValue]]:
    """Yield a value and everything inside it, parents first, in source order."""
    pending: list[tuple[JsonPointer, JsonValue]] = [(pointer, value)]
    while pending:
        place, current = pending.pop()
        yield place, current
        if isinstance(current, dict):
            pending.extend((place / key, item) for key, item in reversed(current.items()))
        elif isinstance(current, list):
            pending.extend((place / i, current[i]) for i in reversed(range(len(current))))


def require_exact(value: JsonValue, pointer: JsonPointer) -> None:
    """Refuse numbers that reading would round, anywhere inside a value.

    Raises: InvalidSchema — at the number.
    """
    if isinstance(value, JsonNumber):
        _require_exact_number(value, pointer)
    elif isinstance(value, (list, dict)):
        for place, item in walk(value, pointer):
            if isinstance(item, JsonNumber):
                _require_exact_number(item, place)


def write_json(value: JsonValue, comma: str = ",", colon: str = ":") -> str:
    """Return the canonical text: source order, canonical escapes, numbers as they were written."""
    match value:
        case str():
            return encode_basestring(value)
        case JsonNumber():
            return value.text
        case dict():
            members = (
                encode_basestring(key) + colon + write_json(item, comma, colon)
                for key, item in value.items()
            )
            return "{" + comma.join(members) + "}"
        case list():
            return "[" + comma.join(write_json(item, comma, colon) for item in value) + "]"
        case _:
            return "null" if value is None else "true" if value else "false"


class _Constant(Exception):
    """``NaN`` or ``Infinity`` was met."""


def _refuse_constant(name: str) -> NoReturn:
    raise _Constant(name)


_STRING_OR_CONSTANT = re.compile(r'"(?:[^"\\]|\\.)*"|-?Infinity|NaN', re.DOTALL)


def _constant_offset(source: str, name: str) -> int:
    return next(m.start() for m in _STRING_OR_CONSTANT.finditer(source) if m.group() == name)


def _require_unicode(source: str) -> None:
    try:
        source.encode()
    except UnicodeEncodeError as error:
        place = TextPosition.of_offset(source, error.start)
        raise InvalidSchema("not JSON: a surrogate stands alone", location=place) from None


_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def _require_depth(source: str) -> None:
    if source.count("[") + source.count("{") <= DEPTH_LIMIT:
        return
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(source):
        character = match.group()
        if character in "[{":
            depth += 1
        elif character in "]}":
            depth -= 1
        if depth > DEPTH_LIMIT:
            raise UnsupportedSchema(
                f"nested over {DEPTH_LIMIT} levels",
                keyword="json_depth",
                location=TextPosition.of_offset(source, match.start()),
            )


def _refuse_repeat(value: JsonValue) -> None:
    for place, item in walk(value, JsonPointer()):
        if isinstance(item, _Repeating):
            raise InvalidSchema("the key is repeated", location=place / item.key)


_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


def _refuse_surrogates(value: JsonValue) -> None:
    for place, item in walk(value, JsonPointer()):
        for text in [item] if isinstance(item, str) else item if isinstance(item, dict) else []:
            if any("\ud800" <= c <= "\udfff" for c in text):
                raise InvalidSchema("a surrogate stands alone", location=_printable(place))


def _printable(place: JsonPointer) -> JsonPointer:
    tokens = (t.encode("utf-8", "replace").decode() for t in place.tokens)
    return JsonPointer(tuple(tokens))


def _require_exact_number(number: JsonNumber, pointer: JsonPointer) -> None:
    if number.is_rounded:
        raise InvalidSchema(f"reading would round the number {number.text}", location=pointer)
