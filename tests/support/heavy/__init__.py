"""Constraints made to explode, by kind and family, from a seed and a size.

Sizes are about the length of the source; ``heavy`` cuts nothing but leaves out what came out over
the limit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random
from typing import Any, NamedTuple

from ninfer.contract import OutputConstraint
from support.heavy import choices, grammars, regexes, schemas

SOURCE_BYTES = 64 << 10

KINDS: dict[str, Mapping[str, Any]] = {
    "regex": regexes.FAMILIES,
    "grammar": grammars.FAMILIES,
    "choice": choices.FAMILIES,
    "json_schema": schemas.FAMILIES,
}
FAMILIES: tuple[tuple[str, str], ...] = tuple((k, f) for k, names in KINDS.items() for f in names)


class Heavy(NamedTuple):
    """One case: where it comes from, and the constraint."""

    kind: str
    family: str
    seed: int
    size: int
    constraint: OutputConstraint
    source_bytes: int


def heavy(kind: str, family: str, seed: int, size: int) -> Heavy | None:
    """Return one case, or None where it came out over 64 KiB."""
    made = KINDS[kind][family](Random(f"{kind} {family} {seed} {size}"), size)
    constraint = _constraint(kind, made)
    text = constraint.source or "\0".join(constraint.literals)
    length = len(text.encode())
    return Heavy(kind, family, seed, size, constraint, length) if length <= SOURCE_BYTES else None


def _constraint(kind: str, made: Any) -> OutputConstraint:
    match kind:
        case "regex":
            return OutputConstraint.regex(made)
        case "grammar":
            return OutputConstraint.grammar(made)
        case "choice":
            return OutputConstraint.choice(made)
        case _:
            source = made if isinstance(made, str) else json.dumps(made, ensure_ascii=False)
            return OutputConstraint.json_schema(source)
