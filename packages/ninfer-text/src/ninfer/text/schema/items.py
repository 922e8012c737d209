"""The texts of arrays: a prefix by position, then a common rest.

Where items must be counted by what they are (``contains``) or remembered (``uniqueItems``), the
count or the set of values already used becomes part of a state, and every state is a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ninfer.contract.errors import UnsupportedSchema
from ninfer.text.grammar import (
    EMPTY,
    NOTHING,
    Literal,
    Node,
    Reference,
    alternation,
    concatenation,
    optional,
    repetition,
)
from ninfer.text.json_source import JsonNumber, JsonValue
from ninfer.text.schema.formula import FALSE, Formula
from ninfer.text.schema.numbers import NumberSet
from ninfer.text.schema.reduction import Reduction
from ninfer.text.schema.rules import Rules
from ninfer.text.schema.scalars import decimal_text
from ninfer.text.schema.shapes import ArrayShape, Value
from ninfer.text.schema.spelling import Spelling

UNIQUE_LIMIT = 8
"""How many different values unique items may have to stand in any order."""


class _Place(NamedTuple):
    """How far a counted array is: items passed, items of each required kind, values used."""

    passed: int = 0
    kinds: tuple[int, ...] = ()
    used: frozenset[int] = frozenset()


@dataclass(slots=True)
class Items:
    """One array shape being spelled."""

    shape: ArrayShape
    value: Callable[[Formula], Node]
    spelling: Spelling
    rules: Rules
    context: Reduction
    _places: dict[_Place, Reference] = field(default_factory=dict)
    _pending: list[_Place] = field(default_factory=list)
    _pool: list[Formula] = field(default_factory=list)

    def node(self) -> Node:
        """Return the text of the whole array."""
        shape = self.shape
        if shape.some or (shape.unique and shape.most not in (0, 1)):
            body = self._counted(_Place(kinds=(0,) * len(shape.some)))
        else:
            body = self._plain()
        return concatenation(Literal("["), body, Literal("]"))

    def _plain(self) -> Node:
        shape = self.shape
        comma: Node = Literal(self.spelling.comma)
        first = len(shape.prefix)
        tail: Node = EMPTY
        if shape.most is None or shape.most > first:
            item = self.value(shape.rest)
            if item == NOTHING:
                return self._plain_prefix(EMPTY if shape.least <= first else NOTHING)
            low = max(shape.least - max(first, 1), 0)
            high = None if shape.most is None else shape.most - max(first, 1)
            tail = repetition(concatenation(comma, item), low, high)
            if not first:
                body = concatenation(item, tail)
                return body if shape.least else optional(body)
        return self._plain_prefix(tail)

    def _plain_prefix(self, tail: Node) -> Node:
        """Return the items by position, and what follows the last of them."""
        shape = self.shape
        comma: Node = Literal(self.spelling.comma)
        for index in reversed(range(len(shape.prefix))):
            item = self.value(shape.prefix[index])
            if item == NOTHING:
                tail = NOTHING if index < shape.least else EMPTY
                continue
            text = concatenation(comma, item, tail) if index else concatenation(item, tail)
            tail = text if index < shape.least else optional(self.rules.named(text))
        return tail

    def _counted(self, start: _Place) -> Node:
        """Return the items where something is counted; every place is a rule."""
        name = self._place(start)
        while self._pending:
            place = self._pending.pop()
            self.rules.define(self._places[place], alternation(*self._options(place)))
        return name

    def _place(self, place: _Place) -> Node:
        if place not in self._places:
            self._places[place] = self.rules.reserve()
            self._pending.append(place)
        return self._places[place]

    def _options(self, place: _Place) -> Iterator[Node]:
        shape = self.shape
        if place.passed >= shape.least and all(
            seen >= wanted.least for seen, wanted in zip(place.kinds, shape.some, strict=True)
        ):
            yield EMPTY
        if shape.most is not None and place.passed >= shape.most:
            return
        last = max(len(shape.prefix), shape.least, shape.most or 0, 1)
        after = place._replace(passed=min(place.passed + 1, last))
        comma = Literal(self.spelling.comma) if place.passed else EMPTY
        formula = shape.at(place.passed)
        if formula is FALSE:
            return
        choices = self._unused(formula, after) if shape.unique else self._kinds(formula, after)
        for item, then in choices:
            yield concatenation(comma, self.value(item), self._place(then))

    def _kinds(self, formula: Formula, after: _Place) -> Iterator[tuple[Formula, _Place]]:
        """Yield what the next item may be, by the kinds it counts for."""
        choices: list[tuple[tuple[Formula, ...], tuple[int, ...]]] = [((formula,), ())]
        formulas = self.context.formulas
        for seen, (kind, least, most, place) in zip(after.kinds, self.shape.some, strict=True):
            inside, outside = (kind,), () if most is None else (self.context.deny(kind, place),)
            grown: list[tuple[tuple[Formula, ...], tuple[int, ...]]] = []
            for parts, counts in choices:
                grown.append(((*parts, *outside), (*counts, seen)))
                if seen < (least if most is None else most):
                    grown.append(((*parts, *inside), (*counts, seen + 1)))
            choices = grown
        for parts, counts in choices:
            item = formulas.all_of(parts)
            if item is not FALSE:
                yield item, after._replace(kinds=counts)

    def _unused(self, formula: Formula, after: _Place) -> Iterator[tuple[Formula, _Place]]:
        """Yield the values that are still free; many values stand in one order only."""
        if not self._pool:
            self._pool = self._values()
        allowed = set(self._finite(formula))
        is_free = len(self._pool) <= UNIQUE_LIMIT
        for number, value in enumerate(self._pool):
            if value not in allowed:
                continue
            if is_free and number not in after.used:
                yield value, after._replace(used=after.used | {number})
            elif not is_free and number > max(after.used, default=-1):
                yield value, after._replace(used=frozenset({number}))

    def _values(self) -> list[Formula]:
        shape = self.shape
        places = [*shape.prefix, *([] if shape.rest is FALSE else [shape.rest])]
        return list(dict.fromkeys(v for formula in places for v in self._finite(formula)))

    def _finite(self, formula: Formula) -> list[Formula]:
        """Return the values of a finite formula.

        Raises: UnsupportedSchema — infinitely many, too many, or counted by kind as well.
        """
        found = None if self.shape.some else finite_values(self.context.reduce(formula))
        if found is None:
            assert self.shape.unique is not None
            raise UnsupportedSchema(
                "is only supported where the items are finitely many scalar values",
                keyword="uniqueItems",
                location=self.shape.unique,
            )
        return [self.context.formulas.exactly(value) for value in found]


VALUE_LIMIT = 256
"""How many different values unique items may have."""


def finite_values(value: Value) -> list[JsonValue] | None:
    """Return the members of a finite set of scalars, or None."""
    if value.strings.terms or value.arrays or value.objects:
        return None
    numbers = _finite_numbers(value.numbers)
    if numbers is None:
        return None
    found: list[JsonValue] = [None] if value.null else []
    found += [*sorted(value.booleans), *numbers, *value.strings.finite]
    return found if len(found) <= VALUE_LIMIT else None


def _finite_numbers(numbers: NumberSet) -> list[JsonValue] | None:
    found: list[JsonValue] = []
    for low, high, step in numbers.wholes:
        if low is None or high is None or (high - low) // step >= VALUE_LIMIT:
            return None
        found += [JsonNumber(str(number)) for number in range(low, high + 1, step)]
    for piece in numbers.betweens:
        if piece.low is None or piece.low != piece.high:
            return None
        found.append(JsonNumber(decimal_text(piece.low)))
    return found
