"""Intersection of closed forms.

Objects meet field by field: a name that only one side knows meets the other side's class of that
name, so that a closed side is never reopened. Arrays meet position by position.
"""

from __future__ import annotations

from dataclasses import replace

from ninfer.text.schema import strings
from ninfer.text.schema.context import Context
from ninfer.text.schema.formula import FALSE, Formula
from ninfer.text.schema.shapes import (
    ANYTHING,
    ArrayShape,
    Field,
    KeyClass,
    ObjectShape,
    Value,
    distinct_arrays,
    distinct_objects,
)


def meet(a: Value, b: Value, context: Context) -> Value:
    """Return the values that both forms have."""
    if a is ANYTHING or a is b:
        return b
    if b is ANYTHING:
        return a
    context.spend_conjunction()
    context.spend_members(_pairs(a, b))
    arrays = (meet_arrays(x, y, context) for x in a.arrays for y in b.arrays)
    objects = (shape for x in a.objects for y in b.objects for shape in meet_objects(x, y, context))
    return Value(
        a.null and b.null,
        a.booleans & b.booleans,
        a.numbers & b.numbers,
        strings.meet(a.strings, b.strings, context.oracle),
        distinct_arrays(shape for shape in arrays if shape is not None),
        distinct_objects(objects),
    )


def _pairs(a: Value, b: Value) -> int:
    """Return how many pieces of numbers and strings meet each other; one piece meets for free."""
    wholes = len(a.numbers.wholes) * len(b.numbers.wholes)
    betweens = len(a.numbers.betweens) * len(b.numbers.betweens)
    texts = len(a.strings.finite) * len(b.strings.terms) + len(b.strings.finite) * len(
        a.strings.terms
    )
    return max(wholes - 1, 0) + max(betweens - 1, 0) + texts


def meet_arrays(a: ArrayShape, b: ArrayShape, context: Context) -> ArrayShape | None:
    """Return the common arrays of two shapes, None where there are none."""
    context.spend_conjunction()
    both = context.formulas.all_of
    positions = max(len(a.prefix), len(b.prefix))
    context.spend_members(positions)
    return trimmed_array(
        ArrayShape(
            tuple(both((a.at(i), b.at(i))) for i in range(positions)),
            both((a.rest, b.rest)),
            max(a.least, b.least),
            _lower(a.most, b.most),
            tuple(dict.fromkeys((*a.some, *b.some))),
            a.unique or b.unique,
        )
    )


def trimmed_array(shape: ArrayShape) -> ArrayShape | None:
    """Return an equal shape that ends before the first impossible position.

    Only a required length beyond that position leaves nothing.
    """
    prefix, rest, most = shape.prefix, shape.rest, shape.most
    if FALSE in prefix:
        most = _lower(most, prefix.index(FALSE))
    if rest is FALSE:
        most = _lower(most, len(prefix))
    if most is not None:
        if shape.least > most:
            return None
        prefix = prefix[:most]
        rest = FALSE if most == len(prefix) else rest
    while prefix and prefix[-1] is rest and rest is not FALSE:
        prefix = prefix[:-1]
    if any(some.most is not None and some.least > some.most for some in shape.some):
        return None
    return replace(shape, prefix=prefix, rest=rest, most=most)


def meet_objects(a: ObjectShape, b: ObjectShape, context: Context) -> list[ObjectShape]:
    """Return the common objects of two shapes, several where a member must exist somewhere."""
    context.spend_conjunction()
    context.spend_members(len(a.fields) + len(b.fields) + len(a.classes) * len(b.classes))
    fields: dict[str, Field] = {}
    for name in dict.fromkeys((*a.fields, *b.fields)):
        x, y = a.fields.get(name), b.fields.get(name)
        left = a.at(name, context.oracle)
        formula = context.formulas.all_of((left, b.at(name, context.oracle)))
        required = (x is not None and x.required) or (y is not None and y.required)
        declared = (x is not None and x.declared) or (y is not None and y.declared)
        if required and formula is not left and context.is_hollow(formula):
            return []
        fields[name] = Field(formula, required, declared)
    shape = ObjectShape(
        fields,
        _meet_classes(a.classes, b.classes, context),
        max(a.least, b.least),
        _lower(a.most, b.most),
        tuple(dict.fromkeys((*a.some, *b.some))),
    )
    split = _placed(shape, context) if shape.some else [shape]
    trimmed = (trimmed_object(part, context) for part in split)
    return [part for part in trimmed if part is not None]


def _placed(shape: ObjectShape, context: Context) -> list[ObjectShape]:
    """Return the shape by where its required members of unknown name are.

    Each is one of the known fields, or has a name that is none of them.
    """
    done: list[ObjectShape] = []
    pending = [shape]
    known = strings.listed(shape.fields)
    while pending:
        current = pending.pop()
        wanted = next((s for s in current.some if _names_any(s, current, context)), None)
        if wanted is None:
            done.append(current)
            continue
        context.spend_conjunction()
        context.spend_members(len(current.fields))
        others = tuple(some for some in current.some if some is not wanted)
        for name, field in current.fields.items():
            if field.formula is FALSE or not strings.contains(wanted.keys, name, context.oracle):
                continue
            formula = context.formulas.all_of((field.formula, wanted.formula))
            fields = {**current.fields, name: Field(formula, True, field.declared)}
            pending.append(replace(current, fields=fields, some=others))
        outside = strings.complement(known, context.oracle)
        keys = strings.meet(wanted.keys, outside, context.oracle)
        if keys and current.classes:
            some = (*others, KeyClass(keys, wanted.formula))
            pending.append(replace(current, some=some))
    return done


def _names_any(some: KeyClass, shape: ObjectShape, context: Context) -> bool:
    return any(strings.contains(some.keys, name, context.oracle) for name in shape.fields)


def trimmed_object(shape: ObjectShape, context: Context) -> ObjectShape | None:
    """Return the shape without names that cannot occur anyway, None where it has no object."""
    fields = shape.fields
    required = 0
    for field in fields.values():
        if field.required:
            if field.formula is FALSE:
                return None
            required += 1
    present = required + len(shape.some)
    most = shape.most
    if not shape.classes:
        fields = {name: field for name, field in fields.items() if field.formula is not FALSE}
        if not shape.some:
            if shape.least > len(fields):
                return None
            most = None if most is not None and most >= len(fields) else most
    if most is not None and max(shape.least, present) > most:
        return None
    least = shape.least if shape.least > present else 0
    return replace(shape, fields=fields, least=least, most=most)


def _meet_classes(
    a: tuple[KeyClass, ...], b: tuple[KeyClass, ...], context: Context
) -> tuple[KeyClass, ...]:
    met: list[KeyClass] = []
    for x in a:
        for y in b:
            formula: Formula = context.formulas.all_of((x.formula, y.formula))
            if formula is FALSE:
                continue
            keys = strings.meet(x.keys, y.keys, context.oracle)
            if keys:
                met.append(KeyClass(keys, formula))
    return tuple(met)


def _lower(a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return b if a is None else a
    return min(a, b)
