"""Properties that nodes have by their parts, such as having a finite word or the empty text.

A sequence has one if all its items do, a choice if any option does, a repetition if it may be empty
or its item does; a reference has it if its rule does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set

from ninfer.text.grammar import Alternation, Concatenation, Node, Reference, Repetition

Leaf = Callable[[Node], bool]
"""Whether a node without parts has the property."""


def holds(node: Node, leaf: Leaf, rules: Set[str]) -> bool:
    """Return whether a node has a property, given the rules that have it."""
    if type(node) is Reference:
        return node.rule in rules
    if type(node) is Concatenation:
        return all(holds(item, leaf, rules) for item in node.items)
    if type(node) is Alternation:
        return any(holds(option, leaf, rules) for option in node.options)
    if type(node) is Repetition:
        return node.low == 0 or holds(node.item, leaf, rules)
    return leaf(node)


def least_rules(
    rules: Mapping[str, Node], leaf: Leaf, sure: Set[str] = frozenset()
) -> frozenset[str]:
    """Return the rules that have a property, in time linear in their nodes.

    Math: the least fixed point; ``sure`` rules have it whatever their bodies say.
    """
    search = _Search(leaf, rules.keys() & sure)
    # The last first: rules are mostly written before those that they call.
    for name, body in reversed(tuple(rules.items())):
        if name not in sure:
            search.add(name, body)
    return frozenset(rules.keys() & search.found)


class _Clause:
    """A rule, or a choice inside of one, that holds once so many parts do."""

    __slots__ = ("head", "missing")

    def __init__(self, head: str | int, missing: int) -> None:
        self.head = head
        self.missing = missing


class _Search:
    """Clauses that wait for parts; a choice that waits is numbered."""

    def __init__(self, leaf: Leaf, found: Set[str]) -> None:
        self.found: set[str | int] = set(found)
        self._leaf = leaf
        self._waiting: dict[str | int, list[_Clause]] = {}
        self._choices = 0

    def add(self, name: str, body: Node) -> None:
        """Note what a rule needs, and find all that holds because of it."""
        missing = self._missing(body)
        if missing:
            self._wait(name, missing)
        elif missing is not None:
            self._find(name)

    def _missing(self, node: Node) -> list[str | int] | None:
        """Return the parts that a node needs and that were not found; None if it never holds."""
        if type(node) is Reference:
            return [] if node.rule in self.found else [node.rule]
        if type(node) is Concatenation:
            return self._of_all(node.items)
        if type(node) is Alternation:
            return self._of_any(node.options)
        if type(node) is Repetition:
            return self._missing(node.item) if node.low else []
        return [] if self._leaf(node) else None

    def _of_all(self, items: tuple[Node, ...]) -> list[str | int] | None:
        needed: list[str | int] = []
        for item in items:
            missing = self._missing(item)
            if missing is None:
                return None
            needed += missing
        return needed

    def _of_any(self, options: tuple[Node, ...]) -> list[str | int] | None:
        ways = []
        for option in options:
            missing = self._missing(option)
            if missing is not None:
                if not missing:
                    return []
                ways.append(missing)
        if len(ways) <= 1:
            return ways[0] if ways else None
        self._choices += 1
        for missing in ways:
            self._wait(self._choices, missing)
        return [self._choices]

    def _wait(self, head: str | int, missing: list[str | int]) -> None:
        clause = _Clause(head, len(missing))
        for part in missing:
            self._waiting.setdefault(part, []).append(clause)

    def _find(self, head: str | int) -> None:
        pending = [head]
        while pending:
            part = pending.pop()
            if part in self.found:
                continue
            self.found.add(part)
            for clause in self._waiting.pop(part, ()):
                clause.missing -= 1
                if not clause.missing:
                    pending.append(clause.head)
