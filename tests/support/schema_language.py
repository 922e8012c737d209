"""Schemas as languages of texts, for tests: what is accepted, reachable, refused."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from ninfer.contract import OutputConstraint, RequestError, UnknownKeywords
from ninfer.text import Compiled, ConstraintCompiler, Matcher
from support.vocabularies import byte_vocabulary


@cache
def compiler() -> ConstraintCompiler:
    """Return one compiler over single bytes for all tests."""
    return ConstraintCompiler(byte_vocabulary())


def source_of(schema: Any) -> str:
    """Return the source text of a schema given as text or as a Python value."""
    return schema if isinstance(schema, str) else json.dumps(schema, ensure_ascii=False)


def compiled(schema: Any, unknown: UnknownKeywords = UnknownKeywords.REFUSE) -> Compiled:
    """Return the compiled language of a schema."""
    return compiler().compile(OutputConstraint.json_schema(source_of(schema), unknown))


def matcher_at(
    schema: Any, text: str | bytes, unknown: UnknownKeywords = UnknownKeywords.REFUSE
) -> Matcher | None:
    """Return a matcher behind a text, or None where the language has no word with that prefix."""
    matcher = compiler().matcher(compiled(schema, unknown))
    data = text.encode() if isinstance(text, str) else text
    return matcher if matcher.feed(data) == len(data) else None


def accepts(
    schema: Any, text: str | bytes, unknown: UnknownKeywords = UnknownKeywords.REFUSE
) -> bool:
    """Return whether a text is a word of a schema's language."""
    matcher = matcher_at(schema, text, unknown)
    return matcher is not None and matcher.can_end


def has_value(schema: Any, value: Any) -> bool:
    """Return whether the compact text of a value is in the language."""
    return accepts(schema, json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def next_bytes(schema: Any, text: str | bytes) -> bytes:
    """Return the bytes that may follow a prefix."""
    matcher = matcher_at(schema, text)
    assert matcher is not None, f"{text!r} is not reachable"
    mask = memoryview(bytearray(4 * matcher.mask_words)).cast("i", (1, matcher.mask_words))
    matcher.lookahead((), mask)
    words = mask.cast("B").cast("I")
    return bytes(b for b in range(256) if words[b // 32] >> (b % 32) & 1)


def refusal(schema: Any, unknown: UnknownKeywords = UnknownKeywords.REFUSE) -> RequestError:
    """Return the error that a schema is refused with."""
    try:
        compiled(schema, unknown)
    except RequestError as error:
        return error
    raise AssertionError(f"accepted: {source_of(schema)[:200]}")
