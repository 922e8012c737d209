"""The keywords that combine schemas: what each of them leaves of a closed form.

Every combination is distributed over the assertions beside it. ``oneOf`` is a union where its
branches are provably disjoint, and otherwise every branch without the others it may overlap.
"""

from __future__ import annotations

from dataclasses import replace

from ninfer.text.schema.complement import complement
from ninfer.text.schema.conjunction import meet, meet_objects
from ninfer.text.schema.context import Context
from ninfer.text.schema.disjointness import Prover
from ninfer.text.schema.document import Schema
from ninfer.text.schema.formula import FALSE, TRUE
from ninfer.text.schema.shapes import (
    Field,
    ObjectShape,
    Value,
    distinct_objects,
    union,
)


def any_of(value: Value, branches: tuple[Schema, ...], context: Context) -> Value:
    """Return the values that satisfy at least one branch."""
    forms = (context.reduce(context.formulas.of_schema(branch)) for branch in branches)
    return union([meet(value, form, context) for form in forms])


def one_of(value: Value, branches: tuple[Schema, ...], context: Context, prover: Prover) -> Value:
    """Return the values that satisfy exactly one branch.

    Raises: NoClosedForm — branches may overlap and one of them cannot be negated.
    """
    forms = [context.reduce(context.formulas.of_schema(branch)) for branch in branches]
    met = [meet(value, form, context) for form in forms]
    alone = list(met)
    for i, first in enumerate(met):
        for j in range(i + 1, len(met)):
            if first.is_void or met[j].is_void or prover.are_disjoint(first, met[j]):
                continue
            alone[i] = meet(alone[i], complement(forms[j], context), context)
            alone[j] = meet(alone[j], complement(forms[i], context), context)
    return union(alone)


def without(value: Value, denied: Schema, context: Context) -> Value:
    """Return the values that do not satisfy a schema.

    Raises: NoClosedForm.
    """
    form = context.reduce(context.formulas.of_schema(denied))
    return meet(value, complement(form, context), context)


def conditional(value: Value, schema: Schema, context: Context) -> Value:
    """Return the values that satisfy ``then`` where ``if`` holds, and ``else`` where it does not.

    Raises: NoClosedForm.
    """
    words, of_schema = schema.keywords, context.formulas.of_schema
    condition = context.reduce(of_schema(words["if"]))
    holding = meet(value, condition, context)
    if "then" in words:
        holding = meet(holding, context.reduce(of_schema(words["then"])), context)
    if "else" in words and words["else"].truth is False:
        return holding
    failing = meet(value, complement(condition, context), context)
    if "else" in words:
        failing = meet(failing, context.reduce(of_schema(words["else"])), context)
    return union([holding, failing])


def dependent(
    value: Value, name: str, consequence: tuple[str, ...] | Schema, context: Context
) -> Value:
    """Return the values that satisfy a consequence where they have a member."""
    present = _members((name,))
    if isinstance(consequence, Schema):
        form = context.reduce(context.formulas.of_schema(consequence))
        needed = form.objects
    else:
        needed = (_members(consequence),)
    absent = ObjectShape({name: Field(FALSE, declared=False)})
    shapes: list[ObjectShape] = []
    for shape in value.objects:
        shapes += meet_objects(shape, absent, context)
        for having in meet_objects(shape, present, context):
            for need in needed:
                shapes += meet_objects(having, need, context)
    return replace(value, objects=distinct_objects(shapes))


def _members(names: tuple[str, ...]) -> ObjectShape:
    return ObjectShape({name: Field(TRUE, required=True, declared=False) for name in names})
