"""Closed forms to grammar rules, one rule for every distinct form that is reached."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

from ninfer.text.grammar import (
    NOTHING,
    Alternation,
    Literal,
    Node,
    Reference,
    alternation,
)
from ninfer.text.json_rules import JSON_RULES, VALUE
from ninfer.text.schema.formula import FALSE, TRUE, Formula
from ninfer.text.schema.items import Items
from ninfer.text.schema.members import Members
from ninfer.text.schema.objects import object_node
from ninfer.text.schema.reduction import Reduction
from ninfer.text.schema.rules import Rules
from ninfer.text.schema.scalars import FLAT_LIMIT, number_nodes, string_nodes, texts_node
from ninfer.text.schema.shapes import Value
from ninfer.text.schema.spelling import COMPACT, Spelling


@dataclass(slots=True)
class Emission:
    """The rules of one reduction in one spelling.

    Forms are spelled from a queue, not by recursion, so that depth is no limit here.
    """

    reduction: Reduction
    spelling: Spelling = COMPACT
    rules: Rules = field(default_factory=Rules)
    names: dict[Formula, Node] = field(default_factory=dict)
    _forms: dict[Hashable, Reference] = field(default_factory=dict)
    _pending: list[tuple[Reference, Value]] = field(default_factory=list)

    def value(self, formula: Formula) -> Node:
        """Return the node of a formula's values; ``finish`` spells what it refers to."""
        found = self.names.get(formula)
        if found is None:
            found = self.names[formula] = self._value(formula)
        return found

    def finish(self) -> dict[str, Node]:
        """Spell everything that is referred to and return all rules."""
        while self._pending:
            name, value = self._pending.pop()
            self.rules.define(name, self._form(value))
        return self.rules.bodies

    def _value(self, formula: Formula) -> Node:
        if formula is FALSE:
            return NOTHING
        if formula is TRUE and self.spelling.is_compact:
            return self.rules.shared(VALUE, JSON_RULES)
        value = self.reduction.reduce(formula)
        if value.is_void:
            return NOTHING
        if not value.arrays and not value.objects:
            return self.rules.named(self._form(value))
        name = self._forms.get(value.key)
        if name is None:
            name = self._forms[value.key] = self.rules.reserve()
            self._pending.append((name, value))
        return name

    def _form(self, value: Value) -> Node:
        options = list(self._options(value))
        texts = [option.text for option in options if isinstance(option, Literal)]
        if len(texts) > FLAT_LIMIT:
            others = [option for option in options if not isinstance(option, Literal)]
            return alternation(texts_node(texts), *others)
        return alternation(*options)

    def _options(self, value: Value) -> Iterator[Node]:
        for node in self._nodes(value):
            yield from node.options if isinstance(node, Alternation) else (node,)

    def _nodes(self, value: Value) -> Iterator[Node]:
        if value.null:
            yield Literal("null")
        for truth in sorted(value.booleans):
            yield Literal("true" if truth else "false")
        yield from number_nodes(value.numbers)
        yield from string_nodes(value.strings, self.reduction.oracle, self.rules)
        for array in value.arrays:
            yield Items(array, self.value, self.spelling, self.rules, self.reduction).node()
        for shape in value.objects:
            members = Members(shape, self.value, self.spelling, self.rules, self.reduction)
            yield object_node(members)
