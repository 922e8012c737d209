"""The root of strict parameters: one closed object with names that can stand in a tag."""

from __future__ import annotations

from collections.abc import Iterator

from ninfer.contract import JsonPointer, UnsatisfiableConstraint, UnsupportedSchema
from ninfer.contract.constraint import ConstraintKind
from ninfer.text.schema.formula import Formula, FormulaKind
from ninfer.text.schema.reduction import Reduction
from ninfer.text.schema.shapes import ObjectShape, Value
from ninfer.text.schema.source import Schema

_CHOOSING = ("const", "enum", "anyOf", "oneOf")
_FORBIDDEN_IN_NAMES = frozenset("<>\r\n")


def object_of(reduction: Reduction) -> ObjectShape:
    """Return the object shape that every value of the document has.

    Raises: UnsupportedSchema — the root chooses between values, is not an object, is open, or
            counts its members; UnsatisfiableConstraint — no value satisfies it.
    """
    root = reduction.document.root
    for schema in _root_schemas(root, reduction):
        for keyword in _CHOOSING:
            if keyword in schema.keywords:
                raise _refused("cannot stand at the root of strict parameters", schema, keyword)
    value = reduction.reduce(reduction.root)
    if value.is_void:
        raise UnsatisfiableConstraint(
            "no value satisfies the schema", kind=ConstraintKind.JSON_SCHEMA, location=root.pointer
        )
    if not _is_object_only(value):
        raise _refused("strict parameters are one object", root, "type")
    (shape,) = value.objects
    for name, member in shape.fields.items():
        if member.required and not member.declared:
            raise _refused(f"{name!r} is not declared in properties", root, "required")
    if shape.classes:
        raise _refused(
            "strict parameters need false, so that no other can appear",
            root,
            "additionalProperties",
        )
    if shape.least or shape.most is not None or shape.some:
        keyword = "maxProperties" if shape.most is not None else "minProperties"
        raise _refused("cannot stand at the root of strict parameters", root, keyword)
    for name in shape.fields:
        if not name or not _FORBIDDEN_IN_NAMES.isdisjoint(name):
            raise UnsupportedSchema(
                "a parameter name cannot be empty or hold '<', '>' or a line break",
                keyword="properties",
                location=root.pointer / "properties" / name,
            )
    return shape


def place_of(formula: Formula, name: str) -> JsonPointer:
    """Return where a parameter's schema stands."""
    if formula.kind is FormulaKind.SCHEMA and formula.schema is not None:
        return formula.schema.pointer
    return JsonPointer() / "properties" / name


def _root_schemas(root: Schema, reduction: Reduction) -> Iterator[Schema]:
    """Yield the root and what it takes over by reference or as a part."""
    pending, seen = [root], {id(root)}
    while pending:
        schema = pending.pop()
        yield schema
        parts = list(schema.keywords.get("allOf", ()))
        if "$ref" in schema.keywords:
            parts.append(reduction.document.target(schema))
        for part in parts:
            if id(part) not in seen:
                seen.add(id(part))
                pending.append(part)


def _is_object_only(value: Value) -> bool:
    others = (value.null, value.booleans, value.numbers, value.strings, value.arrays)
    return len(value.objects) == 1 and not any(others)


def _refused(fact: str, schema: Schema, keyword: str) -> UnsupportedSchema:
    return UnsupportedSchema(fact, keyword=keyword, location=schema.place(keyword))
