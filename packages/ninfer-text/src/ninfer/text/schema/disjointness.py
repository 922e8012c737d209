"""Proofs that two closed forms share no value, or that one has none.

A proof looks at type domains, finite sets and intervals, string automata, and a bounded way down
into required members and items. No proof is no statement.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ninfer.text.schema import strings
from ninfer.text.schema.context import Context
from ninfer.text.schema.formula import FALSE, TRUE, Formula, FormulaKind
from ninfer.text.schema.shapes import ArrayShape, ObjectShape, Value

DEPTH = 6
"""How many steps into members and items a proof may take."""


@dataclass(slots=True)
class Prover:
    """Proofs of one reduction; what was proved is remembered."""

    context: Context
    disjoint: set[frozenset[Formula]] = field(default_factory=set)
    hollow: set[Formula] = field(default_factory=set)

    def are_disjoint(self, a: Value, b: Value, depth: int = DEPTH) -> bool:
        """Return whether two forms provably share no value."""
        self.context.spend_comparison()
        if (a.null and b.null) or a.booleans & b.booleans or a.numbers & b.numbers:
            return False
        if strings.meet(a.strings, b.strings, self.context.oracle):
            return False
        return all(self._arrays_disjoint(x, y, depth) for x in a.arrays for y in b.arrays) and all(
            self._objects_disjoint(x, y, depth) for x in a.objects for y in b.objects
        )

    def is_hollow(self, formula: Formula, depth: int = DEPTH) -> bool:
        """Return whether a formula provably has no value."""
        if formula is FALSE or formula in self.hollow:
            return True
        if formula is TRUE or formula.kind is FormulaKind.EXACTLY or not depth:
            return False
        value = self._reduced(formula)
        if value is None or not self._is_hollow_value(value, depth - 1):
            return False
        self.hollow.add(formula)
        return True

    def _is_hollow_value(self, value: Value, depth: int) -> bool:
        if value.null or value.booleans or value.numbers or value.strings:
            return False
        arrays = all(
            any(self.is_hollow(x.at(i), depth) for i in range(min(x.least, len(x.prefix) + 1)))
            for x in value.arrays
        )
        return arrays and all(
            any(f.required and self.is_hollow(f.formula, depth) for f in x.fields.values())
            for x in value.objects
        )

    def _formulas_disjoint(self, f: Formula, g: Formula, depth: int) -> bool:
        if f is FALSE or g is FALSE:
            return True
        if f is TRUE or g is TRUE or f is g or not depth:
            return self.is_hollow(f, depth) or self.is_hollow(g, depth)
        if f.kind is g.kind is FormulaKind.EXACTLY:
            return True
        pair = frozenset({f, g})
        if pair in self.disjoint:
            return True
        a, b = self._reduced(f), self._reduced(g)
        if a is None or b is None or not self.are_disjoint(a, b, depth - 1):
            return False
        self.disjoint.add(pair)
        return True

    def _arrays_disjoint(self, a: ArrayShape, b: ArrayShape, depth: int) -> bool:
        least = max(a.least, b.least)
        if any(most is not None and most < least for most in (a.most, b.most)):
            return True
        positions = min(least, max(len(a.prefix), len(b.prefix)) + 1)
        return any(self._formulas_disjoint(a.at(i), b.at(i), depth) for i in range(positions))

    def _objects_disjoint(self, a: ObjectShape, b: ObjectShape, depth: int) -> bool:
        self.context.spend_comparison()
        least = max(a.least, b.least)
        if any(most is not None and most < least for most in (a.most, b.most)):
            return True
        oracle = self.context.oracle
        names = [name for name, known in a.fields.items() if known.required]
        names += [name for name, known in b.fields.items() if known.required]
        pairs = [(a.at(name, oracle), b.at(name, oracle)) for name in dict.fromkeys(names)]
        pairs.sort(key=lambda pair: pair[0].kind is not FormulaKind.EXACTLY)
        return any(self._formulas_disjoint(f, g, depth) for f, g in pairs)

    def _reduced(self, formula: Formula) -> Value | None:
        return self.context.reduce_if_possible(formula)
