"""How long a grammar becomes when its copies and automata are written out for the core."""

from __future__ import annotations

from ninfer.text.grammar import (
    Automaton,
    Characters,
    Literal,
    Node,
    Repetition,
    children,
)

WRITTEN_LIMIT = 49_152
"""Symbols and edges of one grammar: the core takes a second and 300 MB for them."""

_COUNTED_FROM = 4_096
"""Copies from which the core counts instead."""
_LETTERS_A_SYMBOL = 64


def written_symbols(node: Node) -> int:
    """Return about how many symbols and edges a node is written with.

    Math: a bounded repetition is its item once and a symbol a copy; a class has as many as ranges,
          in every copy; an automaton has its edges.
    """
    total = 0
    pending = [node]
    while pending:
        current = pending.pop()
        total += _own_symbols(current)
        pending.extend(children(current))
    return total


def _own_symbols(node: Node) -> int:
    match node:
        case Automaton(dfa):
            return sum(map(len, dfa.edges))
        case Literal(text):
            return 1 + len(text) // _LETTERS_A_SYMBOL
        case Characters(members):
            return len(members.ranges)
        case Repetition(item, low, high):
            copies = low if high is None else high
            a_copy = _own_symbols(item) if isinstance(item, Characters) else 1
            return copies * a_copy if copies <= _COUNTED_FROM else 1
        case _:
            return 1
