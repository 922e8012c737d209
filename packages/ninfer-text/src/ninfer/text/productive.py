"""Which parts of a grammar have a finite word; the rest is cut away before the core sees it."""

from __future__ import annotations

from collections.abc import Mapping, Set

from ninfer.text.grammar import (
    NOTHING,
    Alternation,
    Automaton,
    Characters,
    Concatenation,
    Grammar,
    Literal,
    Node,
    Repetition,
    TokenTerminal,
    alternation,
    concatenation,
    references,
    repetition,
)
from ninfer.text.properties import holds, least_rules


def without_dead_branches(grammar: Grammar) -> Grammar:
    """Return the grammar without alternatives and rules that have no finite word.

    Math: the productive rules are the least fixed point of "some alternative consists of productive
          parts"; the entry of a grammar without a word becomes NOTHING.
    """
    productive = productive_rules(grammar.rules)
    entry = _cut(grammar.entry, productive)
    reached = _reached(entry, grammar.rules)
    return Grammar(entry, {n: _cut(grammar.rules[n], productive) for n in reached & productive})


def productive_rules(rules: Mapping[str, Node], sure: Set[str] = frozenset()) -> frozenset[str]:
    """Return the names of the rules that have a finite word; of ``sure`` ones that is known."""
    return least_rules(rules, _is_inhabited, sure)


def _has_word(node: Node, productive: Set[str]) -> bool:
    return holds(node, _is_inhabited, productive)


def _is_inhabited(leaf: Node) -> bool:
    match leaf:
        case Characters(members):
            return bool(members)
        case TokenTerminal(ids):
            return bool(ids)
        case Automaton(dfa):
            return not dfa.is_empty
        case _:
            return True


def _cut(node: Node, productive: Set[str]) -> Node:
    if not _has_word(node, productive):
        return NOTHING
    match node:
        case Concatenation(items):
            return concatenation(*(_cut(item, productive) for item in items))
        case Alternation(options):
            living = (option for option in options if _has_word(option, productive))
            return alternation(*(_cut(option, productive) for option in living))
        case Repetition(item, low, high):
            if not _has_word(item, productive):
                return Literal("")
            return repetition(_cut(item, productive), low, high)
        case _:
            return node


def _reached(entry: Node, rules: Mapping[str, Node]) -> set[str]:
    reached: set[str] = set()
    pending = list(references(entry))
    while pending:
        name = pending.pop()
        if name not in reached:
            reached.add(name)
            pending.extend(references(rules[name]))
    return reached
