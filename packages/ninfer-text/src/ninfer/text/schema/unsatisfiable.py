"""Where a schema without values has its reason: the deepest place that nothing can fill."""

from __future__ import annotations

from collections.abc import Iterator, Set

from ninfer.contract.location import JsonPointer
from ninfer.text.grammar import NOTHING, Node, Reference
from ninfer.text.schema.emission import Emission
from ninfer.text.schema.formula import Formula
from ninfer.text.schema.shapes import Value


def is_productive(node: Node, productive: Set[str]) -> bool:
    """Return whether an emitted node has a word; emission only names rules or texts."""
    return node != NOTHING and not (isinstance(node, Reference) and node.rule not in productive)


def unsatisfiable_place(emission: Emission, productive: Set[str]) -> JsonPointer:
    """Return the place of the schema that leaves nothing, following required children down."""
    formula = emission.reduction.root
    place = JsonPointer()
    seen: set[Formula] = set()
    while formula not in seen:
        seen.add(formula)
        if formula.schema is not None:
            place = formula.schema.pointer
        needed = _needed(emission.reduction.reduce(formula))
        empty = (f for f in needed if not is_productive(emission.value(f), productive))
        formula = next(empty, formula)
    return place


def _needed(value: Value) -> Iterator[Formula]:
    """Yield what some array or object cannot do without."""
    for shape in value.objects:
        yield from (known.formula for known in shape.fields.values() if known.required)
    for array in value.arrays:
        yield from (array.at(index) for index in range(min(array.least, len(array.prefix) + 1)))
