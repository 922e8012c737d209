"""Which parts of a grammar may be absent, and how many of them stand in a row.

Copies of a part that may be absent are such a row: ``(x?){2,}`` and ``(x?){2,9}`` are ``(x?)*`` and
``(x?){0,9}``, and the core follows the beginnings of all nine at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from itertools import groupby

from ninfer.text.grammar import (
    Automaton,
    Concatenation,
    Literal,
    Node,
    Repetition,
    children,
    repetition,
    with_children,
)
from ninfer.text.properties import holds, least_rules


def nullable_rules(rules: Mapping[str, Node]) -> frozenset[str]:
    """Return the rules that have the empty text."""
    return least_rules(rules, _is_empty)


def is_nullable(node: Node, nullable: Set[str]) -> bool:
    """Return whether a node has the empty text, given the rules that have it."""
    return holds(node, _is_empty, nullable)


def _is_empty(leaf: Node) -> bool:
    match leaf:
        case Literal(text):
            return not text
        case Automaton(dfa):
            return bool(dfa.accepting[0])
        case _:
            return False


def longest_optional_row(node: Node, nullable: Set[str]) -> int:
    """Return how many neighbours of one sequence may be absent together, at most."""
    longest = max((longest_optional_row(child, nullable) for child in children(node)), default=0)
    if isinstance(node, Concatenation):
        rows = groupby(node.items, key=lambda item: is_nullable(item, nullable))
        return max(longest, *(len(list(row)) for absent, row in rows if absent), 0)
    return max(longest, _idle_copies(node, nullable))


def without_idle_copies(node: Node, nullable: Set[str]) -> Node:
    """Return the node with no more required copies than its language needs.

    Math: where x has the empty text, x{m,n} is x{0,n} and x{m,} is x*.
    """
    if isinstance(node, Repetition) and is_nullable(node.item, nullable):
        return repetition(without_idle_copies(node.item, nullable), 0, node.high)
    return with_children(node, lambda child: without_idle_copies(child, nullable))


def _idle_copies(node: Node, nullable: Set[str]) -> int:
    """Return the bounded copies of a part that may itself be absent."""
    if isinstance(node, Repetition) and is_nullable(node.item, nullable):
        return node.high or 0
    return 0
