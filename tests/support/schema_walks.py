"""Random words of a schema's language, byte by byte, and near misses made from them."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import jsonschema

from ninfer.text import Matcher

_CLOSERS = b'"}]'


def random_word(matcher: Matcher, source: random.Random, limit: int = 400) -> bytes | None:
    """Return a random word, or None where a walk of ``limit`` bytes found no end.

    Effects: the longer the walk, the more it prefers bytes that close something.
    """
    words = matcher.mask_words
    mask = memoryview(bytearray(4 * words)).cast("i", (1, words))
    flat = mask.cast("B").cast("I")
    text = bytearray()
    while len(text) < limit:
        if matcher.can_end and (source.random() < 0.5 or len(text) > limit // 4):
            return bytes(text)
        assert not matcher.lookahead((), mask).dead_ends, f"dead end behind {bytes(text)!r}"
        allowed = [b for b in range(256) if flat[b // 32] >> (b % 32) & 1]
        if not allowed:
            return bytes(text)
        closing = [b for b in allowed if b in _CLOSERS]
        plain = [b for b in allowed if 0x20 <= b < 0x7F] or allowed
        roll = source.random()
        pool = closing if closing and roll < 0.25 + len(text) / limit else plain
        byte = source.choice(allowed if roll > 0.97 else pool)
        assert matcher.preview([byte]) == 1
        matcher.commit()
        text.append(byte)
    return None


def validator(schema: Any) -> Any:
    """Return the independent judge of a schema, with ECMAScript's reading of patterns."""
    kind = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    return kind(_with_own_patterns(schema))


_VALUES = frozenset(("const", "enum", "default", "examples"))
_NAMED = frozenset(("properties", "$defs", "definitions", "dependentSchemas", "dependencies"))


def _with_own_patterns(schema: Any) -> Any:
    """Return a schema with its patterns in this language's own syntax."""
    if isinstance(schema, list):
        return [_with_own_patterns(item) for item in schema]
    return _translated(schema) if isinstance(schema, dict) else schema


def _translated(schema: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for word, value in schema.items():
        if word in _VALUES:
            out[word] = value
        elif word == "pattern" and isinstance(value, str):
            out[word] = ecma(value)
        elif word == "patternProperties" and isinstance(value, dict):
            out[word] = {ecma(name): _with_own_patterns(below) for name, below in value.items()}
        elif word in _NAMED and isinstance(value, dict):
            out[word] = {name: _with_own_patterns(below) for name, below in value.items()}
        else:
            out[word] = _with_own_patterns(value)
    return out


_SPACE = r"\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_CLASSES = {"d": "0-9", "w": "A-Za-z0-9_", "s": _SPACE}


def ecma(pattern: str) -> str:
    """Return an ECMAScript pattern as this language's own; negated classes only outside of one."""
    out, depth = [], 0
    for piece in re.findall(r"\\.|[^\\]", pattern, re.DOTALL):
        if piece[1:].lower() in _CLASSES and (not depth or piece[1:].islower()):
            members = _CLASSES[piece[1:].lower()]
            negated = "^" if piece[1:].isupper() else ""
            piece = members if depth else f"[{negated}{members}]"
        elif piece == "$" and not depth:
            piece = r"\Z"
        elif piece == "." and not depth:
            piece = r"[^\n\r\u2028\u2029]"
        depth += (piece == "[" and not depth) - (piece == "]" and depth > 0)
        out.append(piece)
    return "".join(out)


def near_misses(value: Any, source: random.Random) -> list[Any]:
    """Return values that differ from one in a single place."""
    found: list[Any] = [None, [], {}, "", 0, True, [value], {"a": value}]
    match value:
        case bool() | None:
            pass
        case int() | float():
            found += [value + 1, -value, value * 2, value + 0.5]
        case str():
            found += [value + "x", value[1:], value[::-1], value * 2]
        case list() if value:
            at = source.randrange(len(value))
            found += [value[:at] + value[at + 1 :], [*value, value[at]], value[::-1]]
            found += [
                [*value[:at], miss, *value[at + 1 :]] for miss in near_misses(value[at], source)
            ]
        case dict() if value:
            name = source.choice(list(value))
            rest = {k: v for k, v in value.items() if k != name}
            found += [rest, {**value, "zz": 0}, {**rest, name + "x": value[name]}]
            found += [{**value, name: miss} for miss in near_misses(value[name], source)]
    return found


def compact(value: Any) -> str:
    """Return the compact text of a value."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
