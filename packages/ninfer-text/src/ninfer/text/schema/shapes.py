"""Closed forms: what every schema becomes, one component for every JSON type.

Plain records. Children are formulas, so that recursion stays a graph; the operations on these
records live in ``conjunction``, ``complement`` and ``disjointness``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ninfer.contract.location import JsonPointer
from ninfer.text.schema import numbers, strings
from ninfer.text.schema.formula import FALSE, TRUE, Formula
from ninfer.text.schema.numbers import ANY_NUMBER, NO_NUMBER, NumberSet
from ninfer.text.schema.strings import ANY_STRING, NO_STRING, StringOracle, StringSet, contains


class Field(NamedTuple):
    """A member whose name is known.

    A field that is FALSE and not required may not occur. ``declared`` fields stand first, in
    order; the others may stand anywhere behind them.
    """

    formula: Formula
    required: bool = False
    declared: bool = True


class KeyClass(NamedTuple):
    """Members whose names are not known: what the names and the values are."""

    keys: StringSet
    formula: Formula


ANY_KEY = KeyClass(ANY_STRING, TRUE)


@dataclass(frozen=True, slots=True, eq=False)
class ObjectShape:
    """Objects with given fields and further members of disjoint key classes.

    Names that no class has may not occur. ``some`` are further members that must occur at least
    once each, in addition to what the classes allow.
    """

    fields: Mapping[str, Field] = field(default_factory=dict)
    classes: tuple[KeyClass, ...] = (ANY_KEY,)
    least: int = 0
    most: int | None = None
    some: tuple[KeyClass, ...] = ()

    @property
    def key(self) -> Hashable:
        """Return what equal shapes share."""
        return (
            "object",
            tuple(self.fields.items()),
            self.classes,
            self.least,
            self.most,
            self.some,
        )

    def at(self, name: str, oracle: StringOracle) -> Formula:
        """Return what the value of a member of this name must satisfy."""
        known = self.fields.get(name)
        if known is not None:
            return known.formula
        for keys, formula in self.classes:
            if contains(keys, name, oracle):
                return formula
        return FALSE


class Containing(NamedTuple):
    """How many items satisfy a formula, and where the source asks for it."""

    formula: Formula
    least: int
    most: int | None
    place: JsonPointer


@dataclass(frozen=True, slots=True, eq=False)
class ArrayShape:
    """Arrays by position: a prefix, then a common rest.

    ``unique`` is where the source asks for distinct items.
    """

    prefix: tuple[Formula, ...] = ()
    rest: Formula = TRUE
    least: int = 0
    most: int | None = None
    some: tuple[Containing, ...] = ()
    unique: JsonPointer | None = None

    @property
    def key(self) -> Hashable:
        """Return what equal shapes share."""
        return ("array", self.prefix, self.rest, self.least, self.most, self.some, self.unique)

    def at(self, index: int) -> Formula:
        """Return what the item at a position must satisfy."""
        return self.prefix[index] if index < len(self.prefix) else self.rest


ANY_OBJECT = ObjectShape()
ANY_ARRAY = ArrayShape()


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A set of JSON values as a union of one component for every type."""

    null: bool = False
    booleans: frozenset[bool] = frozenset()
    numbers: NumberSet = NO_NUMBER
    strings: StringSet = NO_STRING
    arrays: tuple[ArrayShape, ...] = ()
    objects: tuple[ObjectShape, ...] = ()

    @property
    def is_void(self) -> bool:
        """Return whether no component is left; children are not looked at."""
        return not (
            self.null
            or self.booleans
            or self.numbers
            or self.strings
            or self.arrays
            or self.objects
        )

    @property
    def key(self) -> Hashable:
        """Return what equal values share."""
        return (
            self.null,
            self.booleans,
            self.numbers,
            self.strings,
            tuple(shape.key for shape in self.arrays),
            tuple(shape.key for shape in self.objects),
        )


BOOLEANS = frozenset({False, True})
ANYTHING = Value(True, BOOLEANS, ANY_NUMBER, ANY_STRING, (ANY_ARRAY,), (ANY_OBJECT,))
NOTHING = Value()


def union(values: Iterable[Value]) -> Value:
    """Return the union; shapes that repeat, or that an unlimited one covers, appear once."""
    parts = list(values)
    return Value(
        any(value.null for value in parts),
        frozenset().union(*(value.booleans for value in parts)),
        numbers.union(value.numbers for value in parts),
        strings.union(value.strings for value in parts),
        distinct_arrays(shape for value in parts for shape in value.arrays),
        distinct_objects(shape for value in parts for shape in value.objects),
    )


def distinct_arrays(shapes: Iterable[ArrayShape]) -> tuple[ArrayShape, ...]:
    """Return the shapes without repeats."""
    kept = {shape.key: shape for shape in shapes}
    return (ANY_ARRAY,) if ANY_ARRAY.key in kept else tuple(kept.values())


def distinct_objects(shapes: Iterable[ObjectShape]) -> tuple[ObjectShape, ...]:
    """Return the shapes without repeats."""
    kept = {shape.key: shape for shape in shapes}
    return (ANY_OBJECT,) if ANY_OBJECT.key in kept else tuple(kept.values())
