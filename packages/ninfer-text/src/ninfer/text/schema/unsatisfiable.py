"""Why a schema has no text: the deepest place that nothing can fill, and whether values exist."""

from __future__ import annotations

from collections.abc import Iterator, Set

from ninfer.contract.constraint import ConstraintKind
from ninfer.contract.errors import RequestError, UnsatisfiableConstraint, UnsupportedSchema
from ninfer.contract.location import JsonPointer
from ninfer.text.grammar import NOTHING, Node, Reference
from ninfer.text.schema.emission import Emission
from ninfer.text.schema.formula import Formula
from ninfer.text.schema.shapes import Value


def is_productive(node: Node, productive: Set[str]) -> bool:
    """Return whether an emitted node has a word; emission only names rules or texts."""
    return node != NOTHING and not (isinstance(node, Reference) and node.rule not in productive)


def refusal(emission: Emission, productive: Set[str]) -> RequestError:
    """Return the error of a schema without texts.

    Math: its place is found by following required children down. Numbers that lie between the
          bounds there without being int64 or binary64 are values that cannot be published.
    """
    formula = emission.reduction.root
    place = JsonPointer()
    seen: set[Formula] = set()
    while formula not in seen:
        seen.add(formula)
        if formula.schema is not None:
            place = formula.schema.pointer
        value = emission.reduction.reduce(formula)
        empty = (f for f in _needed(value) if not is_productive(emission.value(f), productive))
        formula = next(empty, formula)
    if emission.reduction.reduce(formula).numbers:
        fact = "no number that can be written lies between the bounds"
        return UnsupportedSchema(fact, keyword="type", location=place)
    return UnsatisfiableConstraint(
        "no value satisfies the schema", kind=ConstraintKind.JSON_SCHEMA, location=place
    )


def _needed(value: Value) -> Iterator[Formula]:
    """Yield what some array or object cannot do without."""
    for shape in value.objects:
        yield from (known.formula for known in shape.fields.values() if known.required)
    for array in value.arrays:
        yield from (array.at(index) for index in range(min(array.least, len(array.prefix) + 1)))
