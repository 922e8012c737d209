"""Which parts of a grammar may be absent, and how many of them stand in a row."""

from __future__ import annotations

from collections.abc import Mapping, Set
from itertools import groupby

from ninfer.text.grammar import (
    Alternation,
    Automaton,
    Concatenation,
    Literal,
    Node,
    Reference,
    Repetition,
    children,
    references,
)


def nullable_rules(rules: Mapping[str, Node]) -> set[str]:
    """Return the rules that have the empty text."""
    users: dict[str, set[str]] = {}
    for name, body in rules.items():
        for used in references(body):
            users.setdefault(used, set()).add(name)
    nullable: set[str] = set()
    pending = list(rules)
    while pending:
        name = pending.pop()
        if name not in nullable and is_nullable(rules[name], nullable):
            nullable.add(name)
            pending.extend(users.get(name, ()))
    return nullable


def is_nullable(node: Node, nullable: Set[str]) -> bool:
    """Return whether a node has the empty text, given the rules that have it."""
    match node:
        case Literal(text):
            return not text
        case Reference(rule):
            return rule in nullable
        case Repetition(item, low):
            return low == 0 or is_nullable(item, nullable)
        case Concatenation(items):
            return all(is_nullable(item, nullable) for item in items)
        case Alternation(options):
            return any(is_nullable(option, nullable) for option in options)
        case Automaton(dfa):
            return bool(dfa.accepting[0])
        case _:
            return False


def longest_optional_row(node: Node, nullable: Set[str]) -> int:
    """Return how many neighbours of one sequence may be absent together, at most."""
    longest = max((longest_optional_row(child, nullable) for child in children(node)), default=0)
    if isinstance(node, Concatenation):
        rows = groupby(node.items, key=lambda item: is_nullable(item, nullable))
        longest = max(longest, *(len(list(row)) for absent, row in rows if absent), 0)
    return longest
