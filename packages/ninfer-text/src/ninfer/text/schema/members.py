"""The texts of objects: declared members in order, then all others in any order.

Declared members are one sequence of optional parts, so the size is linear. What must be counted
(``minProperties``, ``maxProperties``, required names that are not declared) becomes states.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from ninfer.text.grammar import (
    EMPTY,
    NOTHING,
    Automaton,
    Literal,
    Node,
    Reference,
    alternation,
    concatenation,
    optional,
    repetition,
)
from ninfer.text.json_source import write_json
from ninfer.text.schema import strings
from ninfer.text.schema.formula import FALSE, Formula
from ninfer.text.schema.keys import is_plain, other_key
from ninfer.text.schema.reduction import Reduction
from ninfer.text.schema.rules import Rules
from ninfer.text.schema.scalars import key_automaton, string_nodes
from ninfer.text.schema.shapes import KeyClass, ObjectShape
from ninfer.text.schema.spelling import Spelling
from ninfer.text.schema.strings import ANY_STRING

FLOATING_LIMIT = 4
"""How many required, undeclared names may stand in any order; more stand in the schema's order."""


class Member(NamedTuple):
    """A member of known name: its whole text, and whether it must occur."""

    node: Node
    required: bool


class _Place(NamedTuple):
    """How far a counted object is: members passed, seen, surely distinct, floating names seen."""

    passed: int
    seen: int = 0
    distinct: int = 0
    floating: frozenset[int] = frozenset()
    is_started: bool = False
    has_unknown: bool = False


@dataclass(slots=True)
class Members:
    """One object shape being spelled."""

    shape: ObjectShape
    value: Callable[[Formula], Node]
    spelling: Spelling
    rules: Rules
    context: Reduction
    ordered: list[Member] = field(default_factory=list)
    floating: list[Node] = field(default_factory=list)
    unknown: Node = NOTHING
    last: Node = EMPTY
    _places: dict[_Place, Reference] = field(default_factory=dict)
    _pending: list[_Place] = field(default_factory=list)

    def node(self) -> Node:
        """Return the text of the whole object."""
        self._sort_members()
        shape = self.shape
        if shape.least or shape.most is not None or self.floating or shape.some:
            body = self._counted(_Place(0))
        else:
            body = self._plain()
        return concatenation(Literal("{"), body, Literal("}"))

    def _sort_members(self) -> None:
        names = [n for n, f in self.shape.fields.items() if not f.declared and f.required]
        free = set(names if len(names) <= FLOATING_LIMIT else ())
        for name, known in self.shape.fields.items():
            if known.formula is FALSE:
                continue
            key = Literal(write_json(name) + self.spelling.colon)
            text = concatenation(key, self.value(known.formula))
            if text == NOTHING and not known.required:
                continue
            if name in free:
                self.floating.append(text)
            else:
                self.ordered.append(Member(text, known.required))
        listed = [c for c in self.shape.classes if not c.keys.terms]
        for keys, formula in listed:
            value = self.value(formula)
            for name in keys.finite:
                if name not in self.shape.fields:
                    key = Literal(write_json(name) + self.spelling.colon)
                    self.ordered.append(Member(concatenation(key, value), required=False))
        named = frozenset(n for c in listed for n in c.keys.finite)
        self.unknown = alternation(
            *(self._unknown(c, named) for c in self.shape.classes if c.keys.terms)
        )

    def _unknown(self, members: KeyClass, named: frozenset[str]) -> Node:
        """Return a member of a class, its name none of the known ones."""
        known = {**self.shape.fields, **dict.fromkeys(named)}
        value = self.value(members.formula)
        if members.keys == ANY_STRING and not known:
            key = next(string_nodes(members.keys, self.context.oracle, self.rules))
        elif members.keys == ANY_STRING and all(map(is_plain, known)):
            key = other_key(known, self.rules)
        else:
            key = Automaton(key_automaton(members.keys, frozenset(known), self.context.oracle))
        return concatenation(self.rules.named(key), Literal(self.spelling.colon), value)

    def _plain(self) -> Node:
        """Return the members where nothing is counted."""
        comma = Literal(self.spelling.comma)
        first = next((i for i, m in enumerate(self.ordered) if m.required), None)
        tail = repetition(concatenation(comma, self.unknown), 0, None)
        tail = EMPTY if self.unknown == NOTHING else tail
        if first is not None:
            before = [optional(concatenation(m.node, comma)) for m in self.ordered[:first]]
            after = [self._following(m) for m in self.ordered[first + 1 :]]
            return concatenation(*before, self.ordered[first].node, *after, tail)
        return self._plain_optional(tail)

    def _following(self, member: Member) -> Node:
        node = concatenation(Literal(self.spelling.comma), member.node)
        return node if member.required else optional(node)

    def _plain_optional(self, tail: Node) -> Node:
        """Return the members where none is required: whichever comes first, the rest follows."""
        options: list[Node] = []
        if self.unknown != NOTHING:
            options.append(concatenation(self.unknown, self.rules.named(tail)))
        rest = tail
        for member in reversed(self.ordered):
            rest = self.rules.named(rest)
            options.append(concatenation(member.node, rest))
            rest = concatenation(self._following(member), rest)
        return alternation(EMPTY, *reversed(options))

    def _counted(self, start: _Place) -> Node:
        """Return the members where something is counted; every place is a rule."""
        name = self._place(start)
        while self._pending:
            place = self._pending.pop()
            self.rules.define(self._places[place], self._options(place))
        return name

    def _place(self, place: _Place) -> Node:
        if place not in self._places:
            self._places[place] = self.rules.reserve()
            self._pending.append(place)
        return self._places[place]

    def _options(self, place: _Place) -> Node:
        if place.passed < len(self.ordered):
            member = self.ordered[place.passed]
            after = place._replace(passed=place.passed + 1)
            taken = self._step(place, member.node, after)
            return taken if member.required else alternation(taken, self._place(after))
        options: list[Node] = []
        for number, node in enumerate(self.floating):
            if number not in place.floating:
                seen = place._replace(floating=place.floating | {number})
                options.append(self._step(place, node, seen))
        if self.unknown != NOTHING:
            options.append(self._step(place, self.unknown, place, is_unknown=True))
        if len(place.floating) == len(self.floating):
            options.append(self._end(place))
        return alternation(*options)

    def _step(
        self, place: _Place, member: Node, after: _Place, *, is_unknown: bool = False
    ) -> Node:
        """Return one more member and what follows; a repeated unknown name counts once."""
        most, least = self.shape.most, self.shape.least
        room = None if most is None else most - len(self.shape.some)
        if room is not None and place.seen >= room:
            return NOTHING
        is_distinct = not (is_unknown and place.has_unknown)
        after = after._replace(
            seen=place.seen + 1 if most is not None else 0,
            distinct=min(least, place.distinct + is_distinct),
            is_started=True,
            has_unknown=place.has_unknown or (is_unknown and bool(least)),
        )
        comma = Literal(self.spelling.comma) if place.is_started else EMPTY
        return concatenation(comma, member, self._place(after))

    def _end(self, place: _Place) -> Node:
        """Return the members that must stand last, where enough have been seen.

        They stand last because a later member of the same name would replace them.
        """
        some = self.shape.some
        if place.distinct + (0 if place.has_unknown else len(some)) < self.shape.least:
            return NOTHING
        parts: list[Node] = []
        for number, members in enumerate(some):
            if number or place.is_started:
                parts.append(Literal(self.spelling.comma))
            parts.append(self._existing(members))
        return concatenation(*parts)

    def _existing(self, members: KeyClass) -> Node:
        """Return a member that must occur, held to the classes of the shape as well."""
        options: list[Node] = []
        for keys, formula in self.shape.classes:
            both = strings.meet(keys, members.keys, self.context.oracle)
            value = self.context.formulas.all_of((formula, members.formula))
            if both and value is not FALSE:
                options.append(self._unknown(KeyClass(both, value), frozenset()))
        return alternation(*options)
