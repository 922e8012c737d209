"""Visits the states that most answers share, so that no request pays for their first masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ninfer.contract import OutputConstraint
from ninfer.text._core import CompiledGrammar
from ninfer.text._matcher import Matcher

SCHEMA = """{"type": "object", "additionalProperties": false,
"required": ["text", "count", "ratio", "flag", "items"],
"properties": {
    "text": {"type": "string"}, "count": {"type": "integer"}, "ratio": {"type": "number"},
    "flag": {"type": "boolean"}, "items": {"type": "array", "items": {"type": "string"}},
    "last": {"type": "string"}}}"""
OPEN = '{"type": "object", "properties": {"a": {"type": "string", "maxLength": 256}}}'

WALKS: Sequence[tuple[OutputConstraint, str]] = (
    (
        OutputConstraint.json_object(),
        r'{"a":"b\n\u00e9\ud83d\ude00","c":[-1.5e+10,0.25,{},[],true,null,"d"],"e":{"f":false}}',
    ),
    (
        OutputConstraint.json_schema(SCHEMA),
        r'{"text":"a\n\u00e9\ud83d\ude00b","count":-10,"ratio":1.5e+10,"flag":true,'
        r'"items":["a","b"],"last":"c"}',
    ),
    (OutputConstraint.json_schema(OPEN), r'{"a":"b\n","c":[1,"d"],"e":{"f":null}}'),
    (OutputConstraint.json_schema('{"type": "string"}'), r'"a\n\u00e9"'),
)
"""Constraints and an answer to each that passes the rules of strings, numbers and containers."""


def warm_walks(compile_constraint: Callable[[OutputConstraint], CompiledGrammar]) -> None:
    """Fill the masks along the walks.

    Effects: the core keeps the masks of the rules, which equal rules of other grammars share.
    """
    from ninfer.text.schema.warm import SCHEMA_WALKS

    schemas = ((OutputConstraint.json_schema(source), word) for source, word in SCHEMA_WALKS)
    for constraint, answer in (*WALKS, *schemas):
        matcher = Matcher(compile_constraint(constraint))
        mask = memoryview(bytearray(4 * matcher.mask_words)).cast("i", (1, matcher.mask_words))
        for byte in answer.encode():
            matcher.lookahead((), mask)
            matcher.feed(bytes([byte]))
