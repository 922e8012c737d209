"""Instances in the generated form: what a schema's grammar would write for a given value.

Works on the closed forms, not on the grammar, so the two can be held against each other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ninfer.text.json_source import JsonNumber
from ninfer.text.schema import strings
from ninfer.text.schema.formula import Formula, value_key
from ninfer.text.schema.reduction import Reduction
from ninfer.text.schema.shapes import ArrayShape, ObjectShape


@dataclass
class Forms:
    """The values of one reduced schema."""

    reduction: Reduction
    _known: dict[tuple[int, int], bool] = field(default_factory=dict)
    _kept: list[Any] = field(default_factory=list)

    def texts(self, instance: Any) -> list[str]:
        """Return the spellings to try: arranged by a form that has the value, and as written."""
        arranged = _text(self.arranged(instance, self.reduction.root))
        return list(dict.fromkeys([arranged, _text(instance)]))

    def has(self, instance: Any, formula: Formula) -> bool:
        """Return whether a value belongs to a formula's closed form."""
        key = (id(instance), id(formula))
        if key not in self._known:
            self._kept.append(instance)
            self._known[key] = self._has(instance, formula)
        return self._known[key]

    def arranged(self, instance: Any, formula: Formula) -> Any:
        """Return the value with declared members first, in declared order."""
        form = self.reduction.reduce(formula)
        if isinstance(instance, list):
            shapes = [s for s in form.arrays if self._has_array(instance, s)] or form.arrays
            if not shapes:
                return instance
            return [self.arranged(item, shapes[0].at(i)) for i, item in enumerate(instance)]
        if isinstance(instance, dict):
            objects = [s for s in form.objects if self._has_object(instance, s)] or form.objects
            if not objects:
                return instance
            shape = objects[0]
            names = [name for name, known in shape.fields.items() if known.declared]
            order = [n for n in names if n in instance] + [n for n in instance if n not in names]
            oracle = self.reduction.oracle
            return {n: self.arranged(instance[n], shape.at(n, oracle)) for n in order}
        return instance

    def _has(self, instance: Any, formula: Formula) -> bool:
        form = self.reduction.reduce(formula)
        match instance:
            case None:
                return form.null
            case bool():
                return instance in form.booleans
            case int() | float():
                return form.numbers.holds(_exact(instance))
            case str():
                return strings.contains(form.strings, instance, self.reduction.oracle)
            case list():
                return any(self._has_array(instance, shape) for shape in form.arrays)
            case _:
                return any(self._has_object(instance, shape) for shape in form.objects)

    def _has_array(self, items: list[Any], shape: ArrayShape) -> bool:
        if len(items) < shape.least or (shape.most is not None and len(items) > shape.most):
            return False
        if shape.unique and len({value_key(_source(i)) for i in items}) < len(items):
            return False
        for formula, least, most, _ in shape.some:
            found = sum(self.has(item, formula) for item in items)
            if found < least or (most is not None and found > most):
                return False
        return all(self.has(item, shape.at(i)) for i, item in enumerate(items))

    def _has_object(self, members: dict[str, Any], shape: ObjectShape) -> bool:
        if len(members) < shape.least or (shape.most is not None and len(members) > shape.most):
            return False
        oracle = self.reduction.oracle
        if any(known.required and n not in members for n, known in shape.fields.items()):
            return False
        for keys, formula in shape.some:
            if not any(
                strings.contains(keys, n, oracle) and self.has(v, formula)
                for n, v in members.items()
            ):
                return False
        return all(self.has(value, shape.at(n, oracle)) for n, value in members.items())


def _text(instance: Any) -> str:
    return json.dumps(instance, ensure_ascii=False, separators=(",", ":"))


def _exact(number: float) -> Fraction:
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


def _source(instance: Any) -> Any:
    match instance:
        case bool() | None | str():
            return instance
        case int() | float():
            return JsonNumber(repr(instance))
        case list():
            return [_source(item) for item in instance]
        case _:
            return {key: _source(value) for key, value in instance.items()}


def number_texts(instance: Any) -> Iterator[str]:
    """Yield the spelling of every number inside a value."""
    match instance:
        case bool():
            return
        case int() | float():
            yield repr(instance)
        case list():
            for item in instance:
                yield from number_texts(item)
        case dict():
            for item in instance.values():
                yield from number_texts(item)
