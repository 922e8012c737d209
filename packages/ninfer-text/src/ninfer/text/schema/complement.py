"""Complement of closed forms, where it has a closed form itself.

An array or object fails its shape in one of finitely many ways; each way is a shape of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from ninfer.text.schema import strings
from ninfer.text.schema.conjunction import meet_arrays, meet_objects
from ninfer.text.schema.context import Context, NoClosedForm
from ninfer.text.schema.formula import FALSE, TRUE
from ninfer.text.schema.numbers import NotComplementable
from ninfer.text.schema.shapes import (
    ANY_ARRAY,
    ANY_OBJECT,
    BOOLEANS,
    ArrayShape,
    Containing,
    Field,
    KeyClass,
    ObjectShape,
    Value,
    distinct_arrays,
    distinct_objects,
)


def complement(value: Value, context: Context) -> Value:
    """Return every other value.

    Raises: NoClosedForm.
    """
    try:
        numbers = ~value.numbers
    except NotComplementable:
        raise NoClosedForm("a set of multiples cannot be negated") from None
    return Value(
        not value.null,
        BOOLEANS - value.booleans,
        numbers,
        strings.complement(value.strings, context.oracle),
        _other_arrays(value.arrays, context),
        _other_objects(value.objects, context),
    )


def _other_arrays(shapes: tuple[ArrayShape, ...], context: Context) -> tuple[ArrayShape, ...]:
    rest: tuple[ArrayShape, ...] = (ANY_ARRAY,)
    for shape in shapes:
        failures = list(_array_failures(shape, context))
        met = (meet_arrays(a, b, context) for a in rest for b in failures)
        rest = distinct_arrays(found for found in met if found is not None)
    return rest


def _array_failures(shape: ArrayShape, context: Context) -> Iterator[ArrayShape]:
    if shape.unique:
        raise NoClosedForm("uniqueItems cannot be negated")
    if shape.least:
        yield ArrayShape(most=shape.least - 1, rest=FALSE if shape.least == 1 else TRUE)
    if shape.most is not None:
        yield ArrayShape(least=shape.most + 1)
    for index, formula in enumerate(shape.prefix):
        if formula is not TRUE:
            wrong = context.deny(formula)
            yield ArrayShape((*[TRUE] * index, wrong), least=index + 1)
    if shape.rest not in (TRUE, FALSE):
        if shape.prefix:
            raise NoClosedForm("items behind a prefix cannot be negated")
        yield ArrayShape(some=(Containing(context.deny(shape.rest), 1, None, context.place),))
    for formula, least, most, place in shape.some:
        if least:
            yield ArrayShape(some=(Containing(formula, 0, least - 1, place),))
        if most is not None:
            yield ArrayShape(some=(Containing(formula, most + 1, None, place),))


def _other_objects(shapes: tuple[ObjectShape, ...], context: Context) -> tuple[ObjectShape, ...]:
    rest: tuple[ObjectShape, ...] = (ANY_OBJECT,)
    for shape in shapes:
        failures = list(_object_failures(shape, context))
        met = [meet_objects(a, b, context) for a in rest for b in failures]
        rest = distinct_objects(found for part in met for found in part)
    return rest


def _object_failures(shape: ObjectShape, context: Context) -> Iterator[ObjectShape]:
    if shape.some:
        raise NoClosedForm("members of unknown name cannot be negated")
    for name, field in shape.fields.items():
        if field.required:
            yield ObjectShape({name: Field(FALSE, declared=False)})
        if field.formula is not TRUE:
            wrong = context.deny(field.formula)
            yield ObjectShape({name: Field(wrong, required=True, declared=field.declared)})
    if shape.least:
        yield ObjectShape(most=shape.least - 1)
    if shape.most is not None:
        yield ObjectShape(least=shape.most + 1)
    yield from _unknown_failures(shape, context)


def _unknown_failures(shape: ObjectShape, context: Context) -> Iterator[ObjectShape]:
    """Yield the objects with a member of unknown name that breaks its class."""
    known = strings.listed(shape.fields)
    outside = strings.complement(known, context.oracle)
    for keys, formula in shape.classes:
        if formula is not TRUE:
            inside = strings.meet(keys, outside, context.oracle)
            yield ObjectShape(some=(KeyClass(inside, context.deny(formula)),))
        outside = strings.meet(outside, strings.complement(keys, context.oracle), context.oracle)
    if outside:
        yield ObjectShape(some=(KeyClass(outside, TRUE),))
