"""What the assertions of one schema say about each type, as one closed form.

Applies to the keywords that constrain values directly; combinations are ``combinations``'.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ninfer.contract.errors import InvalidSchema, UnsupportedSchema
from ninfer.text.schema import numbers, strings
from ninfer.text.schema.conjunction import trimmed_array, trimmed_object
from ninfer.text.schema.context import Context
from ninfer.text.schema.document import Schema
from ninfer.text.schema.formats import number_format, string_format
from ninfer.text.schema.formula import FALSE, TRUE, Formula
from ninfer.text.schema.numbers import ANY_INTEGER, ANY_NUMBER, NO_NUMBER, Bound, NumberSet
from ninfer.text.schema.payloads import TYPES
from ninfer.text.schema.shapes import (
    ANYTHING,
    BOOLEANS,
    ArrayShape,
    Containing,
    Field,
    KeyClass,
    ObjectShape,
    Value,
)
from ninfer.text.schema.strings import ANY_STRING, NO_STRING, Atom, AtomKind, StringSet, Term
from ninfer.text.schema.whole_numbers import STEP_LIMIT

OPTIONAL_LIMIT = 768
"""How many members of one object may be absent: the core follows all of their names at once."""

_ASSERTIONS = frozenset(
    "type minimum maximum exclusiveMinimum exclusiveMaximum multipleOf format pattern minLength "
    "maxLength items prefixItems additionalItems minItems maxItems contains minContains "
    "maxContains uniqueItems properties patternProperties additionalProperties propertyNames "
    "required minProperties maxProperties".split()
)


def typed_assertions(schema: Schema, context: Context) -> Value:
    """Return the values that type, bounds, strings, items and members allow.

    Raises: InvalidSchema, UnsupportedSchema — at the keyword.
    """
    if _ASSERTIONS.isdisjoint(schema.keywords):
        return ANYTHING
    types = schema.keywords.get("type", TYPES)
    array = _array_shape(schema, context) if "array" in types else None
    shape = _object_shape(schema, context) if "object" in types else None
    return Value(
        null="null" in types,
        booleans=BOOLEANS if "boolean" in types else frozenset(),
        numbers=_number_set(schema, types, context),
        strings=_string_set(schema, context) if "string" in types else NO_STRING,
        arrays=() if array is None else (array,),
        objects=() if shape is None else (shape,),
    )


def _number_set(schema: Schema, types: frozenset[str], context: Context) -> NumberSet:
    words = schema.keywords
    if "number" not in types and "integer" not in types:
        return NO_NUMBER
    found = ANY_NUMBER if "number" in types else ANY_INTEGER
    for low, high in _bounds(schema):
        found &= low & high
    if "multipleOf" in words:
        found &= numbers.multiples(words["multipleOf"])
        _check_divisor(schema, found)
        for piece in found.wholes:
            context.spend_divisor(piece.step if piece.step > 1 else 0)
    return found & number_format(words["format"]) if "format" in words else found


def _check_divisor(schema: Schema, found: NumberSet) -> None:
    fact = ""
    if any(piece.unit is not None for piece in found.betweens):
        fact = "a fractional divisor is only supported for integers"
    elif any(piece.step > STEP_LIMIT for piece in found.wholes):
        fact = f"a divisor over {STEP_LIMIT} is not supported"
    if fact:
        place = schema.place("multipleOf")
        raise UnsupportedSchema(fact, keyword="multipleOf", location=place)


def _bounds(schema: Schema) -> Iterator[tuple[NumberSet, NumberSet]]:
    words = schema.keywords
    low, high = words.get("exclusiveMinimum"), words.get("exclusiveMaximum")
    for word, side in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(words.get(word), bool) and side not in words:
            raise InvalidSchema(f"says nothing without {side}", location=schema.place(word))
    if "minimum" in words:
        yield numbers.at_least(words["minimum"], is_open=low is True), ANY_NUMBER
    if "maximum" in words:
        yield ANY_NUMBER, numbers.at_most(words["maximum"], is_open=high is True)
    if isinstance(low, Bound):
        yield numbers.at_least(low, is_open=True), ANY_NUMBER
    if isinstance(high, Bound):
        yield ANY_NUMBER, numbers.at_most(high, is_open=True)


def _string_set(schema: Schema, context: Context) -> StringSet:
    words = schema.keywords
    atoms: set[Atom] = set()
    if "pattern" in words:
        # Also where every string matches it: that asks for lengths without any narrowing.
        atoms.add(Atom(AtomKind.PATTERN, words["pattern"]))
    if "format" in words:
        atoms |= string_format(words["format"])
    term = Term(words.get("minLength", 0), words.get("maxLength"), frozenset(atoms))
    return NO_STRING if strings.is_empty(term, context.oracle) else strings.of_term(term)


def _name_atoms(text: str, context: Context) -> frozenset[Atom]:
    """Return the atom of a pattern of names, none where every name matches, as with ``.*``."""
    atom = Atom(AtomKind.PATTERN, text)
    denied = Term(atoms=frozenset({atom._replace(positive=False)}))
    if context.oracle.matches(atom, "") and context.oracle.is_empty(denied):
        return frozenset()
    return frozenset({atom})


def _array_shape(schema: Schema, context: Context) -> ArrayShape | None:
    words, of_schema = schema.keywords, context.formulas.of_schema
    items = words.get("items")
    listed: tuple[Schema, ...] = words.get("prefixItems", ())
    rest = TRUE
    if isinstance(items, tuple):
        listed = items
        rest = of_schema(words["additionalItems"]) if "additionalItems" in words else TRUE
    elif isinstance(items, Schema):
        rest = of_schema(items)
    _check_ignored_items(schema)
    return trimmed_array(
        ArrayShape(
            tuple(of_schema(item) for item in listed),
            rest,
            words.get("minItems", 0),
            words.get("maxItems"),
            _containing(schema, context),
            schema.place("uniqueItems") if words.get("uniqueItems") else None,
        )
    )


def _check_ignored_items(schema: Schema) -> None:
    words = schema.keywords
    ignored = "additionalItems" in words and not isinstance(words.get("items"), tuple)
    if ignored and words["additionalItems"].truth is not True:
        raise UnsupportedSchema(
            "is ignored without a list of items",
            keyword="additionalItems",
            location=schema.place("additionalItems"),
        )


def _containing(schema: Schema, context: Context) -> tuple[Containing, ...]:
    words = schema.keywords
    if "contains" not in words:
        for word in ("minContains", "maxContains"):
            if word in words:
                raise UnsupportedSchema(
                    "is ignored without contains", keyword=word, location=schema.place(word)
                )
        return ()
    formula = context.formulas.of_schema(words["contains"])
    least, most = words.get("minContains", 1), words.get("maxContains")
    return (
        ()
        if not least and most is None
        else (Containing(formula, least, most, schema.place("contains")),)
    )


def _object_shape(schema: Schema, context: Context) -> ObjectShape | None:
    words, of_schema = schema.keywords, context.formulas.of_schema
    classes = _key_classes(schema, context)
    open_shape = ObjectShape({}, classes)
    fields: dict[str, Field] = {}
    patterns = [
        (Term(atoms=_name_atoms(text, context)), of_schema(child))
        for text, child in words.get("patternProperties", {}).items()
    ]
    names = _names(schema, context)
    for name, child in words.get("properties", {}).items():
        parts = [of_schema(child)]
        parts += [f for term, f in patterns if strings.holds(term, name, context.oracle)]
        if not strings.contains(names, name, context.oracle):
            parts.append(FALSE)
        fields[name] = Field(context.formulas.all_of(parts))
    for name in words.get("required", ()):
        if name in fields:
            fields[name] = fields[name]._replace(required=True)
        else:
            formula = open_shape.at(name, context.oracle)
            fields[name] = Field(formula, required=True, declared=False)
    if sum(not field.required for field in fields.values()) > OPTIONAL_LIMIT:
        raise UnsupportedSchema(
            f"more than {OPTIONAL_LIMIT} members may be absent",
            keyword="properties",
            location=schema.place("properties"),
        )
    least, most = words.get("minProperties", 0), words.get("maxProperties")
    return trimmed_object(ObjectShape(fields, classes, least, most), context)


def _key_classes(schema: Schema, context: Context) -> tuple[KeyClass, ...]:
    """Return the names of undeclared members by the patterns they match, disjoint."""
    words, of_schema = schema.keywords, context.formulas.of_schema
    additional = (
        of_schema(words["additionalProperties"]) if "additionalProperties" in words else TRUE
    )
    parts: list[tuple[StringSet, tuple[Formula, ...]]] = [(_names(schema, context), ())]
    for text, child in words.get("patternProperties", {}).items():
        atoms = _name_atoms(text, context)
        inside = strings.of_term(Term(atoms=atoms))
        outside = strings.union(
            strings.of_term(Term(atoms=frozenset({atom._replace(positive=False)})))
            for atom in atoms
        )
        split: list[tuple[StringSet, tuple[Formula, ...]]] = []
        for keys, formulas in parts:
            context.spend_conjunction()
            split.append(
                (strings.meet(keys, inside, context.oracle), (*formulas, of_schema(child)))
            )
            split.append((strings.meet(keys, outside, context.oracle), formulas))
        parts = [(keys, formulas) for keys, formulas in split if keys]
    classes = (
        KeyClass(keys, context.formulas.all_of(formulas) if formulas else additional)
        for keys, formulas in parts
    )
    return tuple(c for c in classes if c.keys and c.formula is not FALSE)


def _names(schema: Schema, context: Context) -> StringSet:
    child: Any = schema.keywords.get("propertyNames")
    if child is None:
        return ANY_STRING
    return context.reduce(context.formulas.of_schema(child)).strings
