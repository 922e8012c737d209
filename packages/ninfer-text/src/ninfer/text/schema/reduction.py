"""Formulas to closed forms: memoised, recursive, with counted work.

A step into a member or an item ends a form, so that recursion through values is a graph of forms;
only references and combinations at one place lean on each other, and they are bounded in depth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from ninfer.contract.errors import InvalidSchema, UnsupportedSchema
from ninfer.contract.location import JsonPointer
from ninfer.text.json_source import JsonNumber, JsonValue
from ninfer.text.schema import combinations, numbers, strings
from ninfer.text.schema.assertions import typed_assertions
from ninfer.text.schema.complement import complement
from ninfer.text.schema.conjunction import meet
from ninfer.text.schema.context import (
    COMPARISON_LIMIT,
    CONJUNCTION_LIMIT,
    DEPTH_LIMIT,
    DIVISOR_LIMIT,
    MEMBER_LIMIT,
    NoClosedForm,
)
from ninfer.text.schema.disjointness import Prover
from ninfer.text.schema.document import Document, Schema
from ninfer.text.schema.formula import FALSE, Formula, FormulaKind, Formulas
from ninfer.text.schema.shapes import (
    ANYTHING,
    NOTHING,
    ArrayShape,
    Field,
    ObjectShape,
    Value,
    union,
)
from ninfer.text.schema.string_automata import StringAutomata


class Blame(NamedTuple):
    """The keyword that asked for something, and where it stands."""

    keyword: str
    pointer: JsonPointer


@dataclass(slots=True)
class Reduction:
    """One document's reduction; implements ``Context``."""

    document: Document
    formulas: Formulas = field(default_factory=Formulas)
    oracle: StringAutomata = field(init=False)
    prover: Prover = field(init=False)
    conjunctions: int = 0
    comparisons: int = 0
    members: int = 0
    divisors: int = 0
    _forms: dict[Formula, Value] = field(default_factory=dict)
    _running: list[Formula] = field(default_factory=list)
    _blame: list[Blame] = field(default_factory=list)
    _denials: dict[Formula, Blame] = field(default_factory=dict)
    _is_trying: bool = False

    def __post_init__(self) -> None:
        self.prover = Prover(self)
        self.oracle = StringAutomata(self.document.strings)

    @property
    def root(self) -> Formula:
        """Return the formula of the whole document."""
        return self.formulas.of_schema(self.document.root)

    def reduce(self, formula: Formula) -> Value:
        """Return the closed form of a formula.

        Raises: InvalidSchema — a reference leads back to itself without a step into the value;
                UnsupportedSchema — a keyword or a limit.
        """
        found = self._forms.get(formula)
        if found is not None:
            return found
        if formula in self._running:
            self._refuse_loop(formula)
        if len(self._running) >= DEPTH_LIMIT:
            self._refuse_limit("reference_depth", DEPTH_LIMIT)
        self._running.append(formula)
        try:
            value = self._forms[formula] = self._evaluate(formula)
        except NoClosedForm as reason:
            if len(self._running) > 1 or self._is_trying:
                raise
            raise UnsupportedSchema(
                f"is not supported here: {reason}", keyword="not", location=self.place
            ) from None
        finally:
            self._running.pop()
        return value

    def reduce_if_possible(self, formula: Formula) -> Value | None:
        """Return the closed form, or None where it is being made or has none."""
        if formula in self._running:
            return None
        trying, self._is_trying = self._is_trying, True
        try:
            return self.reduce(formula)
        except NoClosedForm:
            return None
        finally:
            self._is_trying = trying

    @property
    def place(self) -> JsonPointer:
        """Return where the keyword that is being applied stands."""
        return self._blame[-1].pointer if self._blame else self.document.root.pointer

    def deny(self, formula: Formula, place: JsonPointer | None = None) -> Formula:
        """Return the negation, remembering which keyword asked for it."""
        denied = self.formulas.denial(formula)
        if place is not None:
            self._denials.setdefault(denied, Blame(place.tokens[-1], place))
        elif self._blame:
            self._denials.setdefault(denied, self._blame[-1])
        return denied

    def is_hollow(self, formula: Formula) -> bool:
        """Return whether a formula is provably without a value."""
        return self.prover.is_hollow(formula, depth=2)

    def spend_conjunction(self) -> None:
        """Count one intersection.

        Raises: UnsupportedSchema — the limit is reached.
        """
        self.conjunctions += 1
        if self.conjunctions > CONJUNCTION_LIMIT:
            self._refuse_limit("conjunctions", CONJUNCTION_LIMIT)

    def spend_members(self, members: int) -> None:
        """Count the parts of two forms that an intersection looks at.

        Raises: UnsupportedSchema — the limit is reached.
        """
        self.members += members
        if self.members > MEMBER_LIMIT:
            self._refuse_limit("member_conjunctions", MEMBER_LIMIT)

    def spend_divisor(self, divisor: int) -> None:
        """Count a divisor by its size.

        Raises: UnsupportedSchema — the limit is reached.
        """
        self.divisors += divisor
        if self.divisors > DIVISOR_LIMIT:
            self._refuse_limit("sum_of_divisors", DIVISOR_LIMIT)

    def spend_comparison(self) -> None:
        """Count one comparison.

        Raises: UnsupportedSchema — the limit is reached.
        """
        self.comparisons += 1
        if self.comparisons > COMPARISON_LIMIT:
            self._refuse_limit("comparisons", COMPARISON_LIMIT)

    def _evaluate(self, formula: Formula) -> Value:
        match formula.kind:
            case FormulaKind.TRUE:
                return ANYTHING
            case FormulaKind.FALSE:
                return NOTHING
            case FormulaKind.SCHEMA:
                assert formula.schema is not None
                return self._evaluate_schema(formula.schema)
            case FormulaKind.EXACTLY:
                return self._exactly(formula.value)
            case FormulaKind.ALL:
                value = ANYTHING
                for part in formula.parts:
                    value = meet(value, self.reduce(part), self)
                return value
            case FormulaKind.ANY:
                return union([self.reduce(part) for part in formula.parts])
            case FormulaKind.NOT:
                return self._evaluate_denial(formula)

    def _evaluate_denial(self, formula: Formula) -> Value:
        blame = self._denials.get(formula) or (self._blame[-1] if self._blame else None)
        if blame is None:
            return complement(self.reduce(formula.parts[0]), self)
        with self._blaming(*blame):
            return complement(self.reduce(formula.parts[0]), self)

    def _evaluate_schema(self, schema: Schema) -> Value:
        words = schema.keywords
        value = self._stated_values(schema)
        value = meet(value, typed_assertions(schema, self), self)
        if "$ref" in words:
            target = self.formulas.of_schema(self.document.target(schema))
            value = meet(value, self.reduce(target), self)
        for branch in words.get("allOf", ()):
            value = meet(value, self.reduce(self.formulas.of_schema(branch)), self)
        for keyword, apply in _COMBINATIONS.items():
            if keyword in words:
                with self._blaming(keyword, schema.place(keyword)):
                    value = apply(self, value, schema)
        return value

    def _stated_values(self, schema: Schema) -> Value:
        words = schema.keywords
        value = ANYTHING
        if "const" in words:
            value = self._exactly(words["const"])
        if "enum" in words:
            value = meet(value, self._enumeration(words["enum"]), self)
        return value

    def _enumeration(self, values: list[JsonValue]) -> Value:
        texts = [value for value in values if isinstance(value, str)]
        others = [self._exactly(value) for value in values if not isinstance(value, str)]
        return union([Value(strings=strings.listed(texts)), *others])

    def _exactly(self, value: JsonValue) -> Value:
        exactly = self.formulas.exactly
        match value:
            case str():
                return Value(strings=strings.listed([value]))
            case bool():
                return Value(booleans=frozenset({value}))
            case JsonNumber():
                return Value(numbers=numbers.point(value.exact))
            case list():
                items = tuple(map(exactly, value))
                return Value(arrays=(ArrayShape(items, FALSE, len(items), len(items)),))
            case dict():
                fields = {key: Field(exactly(item), required=True) for key, item in value.items()}
                return Value(objects=(ObjectShape(fields, ()),))
            case _:
                return Value(null=True)

    @contextmanager
    def _blaming(self, keyword: str, pointer: JsonPointer) -> Iterator[None]:
        """Name the keyword whose negation has no closed form."""
        self._blame.append(Blame(keyword, pointer))
        try:
            yield
        except NoClosedForm as reason:
            raise UnsupportedSchema(
                f"is not supported here: {reason}", keyword=keyword, location=pointer
            ) from None
        finally:
            self._blame.pop()

    def _refuse_loop(self, formula: Formula) -> None:
        schemas = [f.schema for f in (formula, *reversed(self._running)) if f.schema is not None]
        schema = next((s for s in schemas if "$ref" in s.keywords), schemas[0])
        word = "$ref" if "$ref" in schema.keywords else next(iter(schema.keywords))
        raise InvalidSchema(
            "leads back to itself without a step into the value", location=schema.place(word)
        )

    def _refuse_limit(self, name: str, limit: int) -> None:
        schemas = [f.schema for f in reversed(self._running) if f.schema is not None]
        pointer = schemas[0].pointer if schemas else JsonPointer()
        raise UnsupportedSchema(
            f"needs more than {limit} {name.replace('_', ' ')}", keyword=name, location=pointer
        )


def _apply_any_of(run: Reduction, value: Value, schema: Schema) -> Value:
    return combinations.any_of(value, schema.keywords["anyOf"], run)


def _apply_one_of(run: Reduction, value: Value, schema: Schema) -> Value:
    return combinations.one_of(value, schema.keywords["oneOf"], run, run.prover)


def _apply_not(run: Reduction, value: Value, schema: Schema) -> Value:
    return combinations.without(value, schema.keywords["not"], run)


def _apply_if(run: Reduction, value: Value, schema: Schema) -> Value:
    return combinations.conditional(value, schema, run)


def _dependent(word: str) -> Callable[[Reduction, Value, Schema], Value]:
    def apply(run: Reduction, value: Value, schema: Schema) -> Value:
        for name, consequence in schema.keywords[word].items():
            value = combinations.dependent(value, name, consequence, run)
        return value

    return apply


_COMBINATIONS: dict[str, Callable[[Reduction, Value, Schema], Value]] = {
    "anyOf": _apply_any_of,
    "oneOf": _apply_one_of,
    "if": _apply_if,
    "dependentRequired": _dependent("dependentRequired"),
    "dependentSchemas": _dependent("dependentSchemas"),
    "dependencies": _dependent("dependencies"),
    "not": _apply_not,
}
