"""Boolean formulas over schemas and values, interned: what a position of an instance must satisfy.

A formula is not evaluated here; ``reduction`` turns it into a closed form on demand, which is how
recursion stays a graph.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ninfer.text.json_source import JsonNumber, JsonValue
from ninfer.text.schema.document import Schema


class FormulaKind(Enum):
    """How a formula is made of its parts."""

    TRUE = "true"
    FALSE = "false"
    SCHEMA = "schema"
    EXACTLY = "exactly"
    ALL = "all"
    ANY = "any"
    NOT = "not"


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """One interned formula; equal formulas of one ``Formulas`` are the same object."""

    kind: FormulaKind
    parts: tuple[Formula, ...] = ()
    schema: Schema | None = None
    value: JsonValue = None


TRUE = Formula(FormulaKind.TRUE)
FALSE = Formula(FormulaKind.FALSE)


@dataclass(slots=True)
class Formulas:
    """The formulas of one document."""

    interned: dict[Any, Formula] = field(default_factory=dict)

    def of_schema(self, schema: Schema) -> Formula:
        """Return the formula of a schema."""
        if schema.truth is not None:
            return TRUE if schema.truth else FALSE
        if not schema.keywords:
            return TRUE
        return self._intern(schema, FormulaKind.SCHEMA, schema=schema)

    def exactly(self, value: JsonValue) -> Formula:
        """Return the formula that one value satisfies."""
        return self._intern(("exactly", value_key(value)), FormulaKind.EXACTLY, value=value)

    def all_of(self, parts: Iterable[Formula]) -> Formula:
        """Return the conjunction; two different values, or a part and its denial, are FALSE."""
        flat = _flat(parts, FormulaKind.ALL, neutral=TRUE)
        if FALSE in flat or self._has_denial(flat):
            return FALSE
        if sum(part.kind is FormulaKind.EXACTLY for part in flat) > 1:
            return FALSE
        if len(flat) < 2:
            return next(iter(flat), TRUE)
        return self._intern(("all", frozenset(flat)), FormulaKind.ALL, tuple(flat))

    def any_of(self, parts: Iterable[Formula]) -> Formula:
        """Return the disjunction."""
        flat = _flat(parts, FormulaKind.ANY, neutral=FALSE)
        if TRUE in flat or self._has_denial(flat):
            return TRUE
        if len(flat) < 2:
            return next(iter(flat), FALSE)
        return self._intern(("any", frozenset(flat)), FormulaKind.ANY, tuple(flat))

    def denial(self, part: Formula) -> Formula:
        """Return the negation."""
        match part.kind:
            case FormulaKind.TRUE:
                return FALSE
            case FormulaKind.FALSE:
                return TRUE
            case FormulaKind.NOT:
                return part.parts[0]
            case _:
                return self._intern(("not", part), FormulaKind.NOT, (part,))

    def _has_denial(self, flat: dict[Formula, None]) -> bool:
        return any(part.kind is FormulaKind.NOT and part.parts[0] in flat for part in flat)

    def _intern(
        self,
        key: Any,
        kind: FormulaKind,
        parts: tuple[Formula, ...] = (),
        schema: Schema | None = None,
        value: JsonValue = None,
    ) -> Formula:
        found = self.interned.get(key)
        if found is None:
            found = self.interned[key] = Formula(kind, parts, schema, value)
        return found


def value_key(value: JsonValue) -> Any:
    """Return a hashable key under which equal JSON values, and no others, agree."""
    match value:
        case JsonNumber():
            return ("number", value.exact)
        case list():
            return ("array", *map(value_key, value))
        case dict():
            return ("object", frozenset((k, value_key(v)) for k, v in value.items()))
        case _:
            return (type(value).__name__, value)


def _flat(parts: Iterable[Formula], kind: FormulaKind, neutral: Formula) -> dict[Formula, None]:
    flat: dict[Formula, None] = {}
    for part in parts:
        if part.kind is kind:
            flat.update(dict.fromkeys(part.parts))
        elif part is not neutral:
            flat[part] = None
    return flat
