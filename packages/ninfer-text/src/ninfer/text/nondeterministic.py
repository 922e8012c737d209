"""Rules that follow a nondeterministic automaton, for languages whose subsets are too many."""

from __future__ import annotations

from ninfer.text.automata.characters import CharacterSet
from ninfer.text.automata.limits import AutomatonLimit, Work
from ninfer.text.automata.nfa import Nfa
from ninfer.text.grammar import (
    EMPTY,
    Characters,
    Grammar,
    Node,
    Reference,
    alternation,
    concatenation,
)

ALTERNATIVE_LIMIT = 1_024
"""Alternatives that the core may have to follow at once."""


def nondeterministic_grammar(nfa: Nfa, limit: int = ALTERNATIVE_LIMIT) -> Grammar:
    """Return right-linear rules, one for every state that a read or the start leads to.

    Raises: AutomatonLimit — the rules have more than ``limit`` alternatives.
    """
    closures = nfa.closures(Work())
    if sum(map(len, closures.values())) > limit:
        raise AutomatonLimit("alternatives of a nondeterministic automaton", limit)
    rules = {_name(head): _body(nfa, closure) for head, closure in closures.items()}
    return Grammar(Reference(_name(nfa.start)), rules)


def _name(state: int) -> str:
    return f"n{state}"


def _body(nfa: Nfa, closure: tuple[int, ...]) -> Node:
    steps: dict[int, CharacterSet] = {}
    for state in closure:
        reads = nfa.reads[state]
        if reads is not None:
            steps[reads[1]] = steps.get(reads[1], CharacterSet()) | reads[0]
    options = [
        concatenation(Characters(members), Reference(_name(target)))
        for target, members in steps.items()
    ]
    return alternation(*([EMPTY] if nfa.accept in closure else []), *options)
