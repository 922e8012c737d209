"""The texts of objects: declared members in order, then all others in any order.

What separates members is written before the next one together with its opening quote, and only
then the names part: a mask that reaches past the end of a value meets one continuation instead of
one for every member that may follow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from ninfer.text.grammar import (
    NOTHING,
    Automaton,
    Literal,
    Node,
    alternation,
    concatenation,
)
from ninfer.text.json_source import write_json
from ninfer.text.schema import strings
from ninfer.text.schema.formula import FALSE, Formula
from ninfer.text.schema.keys import behind_quote, is_plain, other_key
from ninfer.text.schema.reduction import Reduction
from ninfer.text.schema.rules import Rules
from ninfer.text.schema.scalars import key_automaton
from ninfer.text.schema.shapes import KeyClass, ObjectShape
from ninfer.text.schema.spelling import Spelling
from ninfer.text.schema.strings import ANY_STRING

FLOATING_LIMIT = 4
"""How many required, undeclared names may stand in any order; more stand in the schema's order."""

_SEQUENCE_LIMIT = 32
"""How many members one rule may write out."""


class Member(NamedTuple):
    """A member of known name, without the quote that opens it, and whether it must occur."""

    node: Node
    required: bool


@dataclass(slots=True)
class Members:
    """The members of one object shape, each without the quote that opens it.

    ``ordered`` stand first, in order; ``floating`` must occur behind them, in any order;
    ``unknown`` may; ``last`` must stand at the end.
    """

    shape: ObjectShape
    value: Callable[[Formula], Node]
    spelling: Spelling
    rules: Rules
    context: Reduction
    ordered: list[Member] = field(default_factory=list)
    floating: list[Node] = field(default_factory=list)
    unknown: Node = NOTHING
    last: list[Node] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._sort_fields()
        named = self._sort_listed()
        wide = [members for members in self.shape.classes if members.keys.terms]
        self.unknown = alternation(*(self._unknown(members, named) for members in wide))
        self.last = [self._existing(members) for members in self.shape.some]

    @property
    def opening(self) -> Node:
        """Return what stands before the first member's name."""
        return Literal('"')

    @property
    def separator(self) -> Node:
        """Return what stands before every other member's name."""
        return Literal(self.spelling.comma + '"')

    @property
    def closing(self) -> Node:
        """Return the end of the object."""
        return Literal("}")

    def plain(self) -> Node:
        """Return the members where nothing is counted, and the end, in a size linear in them.

        The end is written behind each member that may be the last: what follows a value is then
        known where the value stands.
        """
        can_end = True
        behind = self.unknown
        rest: Node = self.closing
        if behind != NOTHING:
            name = self.rules.reserve()
            behind = self.rules.named(concatenation(self.unknown, name))
            self.rules.define(name, alternation(rest, concatenation(self.separator, behind)))
            rest = name
        for number, member in enumerate(reversed(self.ordered)):
            if number % _SEQUENCE_LIMIT == 0:
                rest = self.rules.named(rest)
            text = concatenation(member.node, rest)
            behind = text if member.required else alternation(text, self.rules.named(behind))
            can_end = can_end and not member.required
            following = concatenation(self.separator, self.rules.named(behind))
            rest = following
            if member.required:
                rest = concatenation(self.separator, text)
            elif can_end:
                rest = self.rules.named(alternation(self.closing, following))
        opened = concatenation(self.opening, behind)
        return alternation(self.closing, opened) if can_end else opened

    def _sort_fields(self) -> None:
        names = [n for n, f in self.shape.fields.items() if not f.declared and f.required]
        free = set(names if len(names) <= FLOATING_LIMIT else ())
        for name, known in self.shape.fields.items():
            if known.formula is FALSE:
                continue
            text = concatenation(self._key(name), self.value(known.formula))
            if name in free:
                self.floating.append(text)
            elif text != NOTHING or known.required:
                self.ordered.append(Member(text, known.required))

    def _sort_listed(self) -> frozenset[str]:
        """Take the names of finite key classes for optional members; return them."""
        listed = [members for members in self.shape.classes if not members.keys.terms]
        for keys, formula in listed:
            for name in keys.finite:
                text = concatenation(self._key(name), self.value(formula))
                if name not in self.shape.fields and text != NOTHING:
                    self.ordered.append(Member(text, required=False))
        return frozenset(name for members in listed for name in members.keys.finite)

    def _key(self, name: str) -> Node:
        return Literal(write_json(name)[1:] + self.spelling.colon)

    def _unknown(self, members: KeyClass, named: frozenset[str]) -> Node:
        """Return a member of a class, its name none of the known ones."""
        known = {**self.shape.fields, **dict.fromkeys(named)}
        if members.keys == ANY_STRING and all(map(is_plain, known)):
            key = other_key(known, self.rules)
        else:
            dfa = key_automaton(members.keys, frozenset(known), self.context.oracle)
            key = NOTHING if dfa.is_empty else Automaton(behind_quote(dfa))
        value = self.value(members.formula)
        return concatenation(self.rules.named(key), Literal(self.spelling.colon), value)

    def _existing(self, members: KeyClass) -> Node:
        """Return a member that must occur, held to the classes of the shape as well."""
        options: list[Node] = []
        for keys, formula in self.shape.classes:
            both = strings.meet(keys, members.keys, self.context.oracle)
            value = self.context.formulas.all_of((formula, members.formula))
            if both and value is not FALSE:
                options.append(self._unknown(KeyClass(both, value), frozenset()))
        return alternation(*options)
