"""The rules of a grammar under construction; equal bodies are one rule."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field

from ninfer.contract.errors import UnsupportedSchema
from ninfer.contract.location import JsonPointer
from ninfer.text.grammar import NOTHING, Literal, Node, Reference, references

RULE_LIMIT = 32_768
"""How many rules one grammar may need."""

_INLINE = (Reference, Literal)


@dataclass(slots=True)
class Rules:
    """Named bodies; names are numbered in the order of first use."""

    bodies: dict[str, Node] = field(default_factory=dict)
    sure: set[str] = field(default_factory=set)
    """Names of rules that have a finite word whatever else is in the grammar."""
    made: dict[Hashable, Node] = field(default_factory=dict)
    """Nodes by what they were made from, for makers that would repeat themselves."""
    _names: dict[Node, Reference] = field(default_factory=dict)
    _taken: int = 0

    def reserve(self) -> Reference:
        """Return a new name whose body comes later.

        Raises: UnsupportedSchema — the limit is reached.
        """
        self._taken += 1
        if self._taken > RULE_LIMIT:
            raise UnsupportedSchema(
                f"needs more than {RULE_LIMIT} grammar rules",
                keyword="grammar_rules",
                location=JsonPointer(),
            )
        return Reference(f"s{self._taken}")

    def define(self, name: Reference, body: Node) -> None:
        """Give a reserved name its body."""
        self.bodies[name.rule] = body

    def shared(self, node: Node, table: Mapping[str, Node]) -> Node:
        """Return a node after adding the rules of a common table that it leans on."""
        if type(node) is Reference and node.rule in self.bodies:
            return node
        pending = list(references(node))
        while pending:
            name = pending.pop()
            if name not in self.bodies:
                self.bodies[name] = table[name]
                self.sure.add(name)
                pending.extend(references(table[name]))
        return node

    def named(self, body: Node, *, is_sure: bool = False) -> Node:
        """Return a reference to a rule of this body; texts and references stand for themselves.

        ``is_sure`` says that the body has a finite word, so that nobody needs to find out.
        """
        if isinstance(body, _INLINE) or body == NOTHING:
            return body
        found = self._names.get(body)
        if found is None:
            found = self._names[body] = self.reserve()
            self.define(found, body)
            if is_sure:
                self.sure.add(found.rule)
        return found

    def keyed(self, key: Hashable, build: Callable[[], Node], *, is_sure: bool = False) -> Node:
        """Return a reference to the rule that a key stands for, built where the key is new.

        Math: equal keys mean equal bodies, and hash faster than they.
        """
        found = self.made.get(key)
        if found is None:
            name = self.reserve()
            self.define(name, build())
            if is_sure:
                self.sure.add(name.rule)
            found = self.made[key] = name
        return found
