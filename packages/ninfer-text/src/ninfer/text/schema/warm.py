"""Schemas and beginnings of answers that pass the rules which grammars of schemas share.

Walking them once at start-up makes the core build those masks off the request path. Lengths have
no place here: masks inside of a count are built anew in every grammar.
"""

from __future__ import annotations

from collections.abc import Sequence

from ninfer.text.schema.keys import GROUPS


def _object_of(names: Sequence[str]) -> str:
    return '{"type":"object","properties":{' + ",".join(f'"{n}":{{}}' for n in names) + "}}"


_INITIALS = [[g[n] for g in GROUPS if n < len(g)] for n in range(max(map(len, GROUPS)))]
"""Names of one letter, one of each group: together they leave out every letter once."""

SCHEMA_WALKS: Sequence[tuple[str, str]] = (
    *((_object_of(names), '{"zz":2') for names in _INITIALS),
    ('{"type":"object","properties":{"é":{}}}', '{"name":"x"}'),
    ('{"type":"object","properties":{"name":{}}}', '{"name":1,"namer":2,"Zulu":3,"n":4}'),
    ('{"type":"string","minLength":1}', '"ab"'),
    ('{"type":"string","minLength":2}', '"ab"'),
    ('{"type":"string","format":"date-time"}', '"2024-02-29T12:00:00.5Z"'),
    ('{"type":"string","format":"uri"}', '"https://a.example/b?c=%20#d"'),
    ('{"type":"string","format":"email"}', '"a.b@c-d.example"'),
    ('{"type":"string","format":"uuid"}', '"123e4567-e89b-12d3-a456-426614174000"'),
    ('{"type":"number","minimum":0}', "12.5e-3"),
    ('{"type":"integer","minimum":0}', "120"),
    ('{"type":"integer","minimum":1}', "120"),
    ('{"type":"array","minItems":1,"items":{"type":"number"}}', "[-1.25,0]"),
)
"""Sources, and a prefix of a word of each."""
