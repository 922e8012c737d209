"""The form of an automaton: a plain sequence, one expression, or a machine of its own."""

from __future__ import annotations

from functools import lru_cache

from ninfer.text.automata.characters import CharacterSet
from ninfer.text.automata.dfa import Dfa
from ninfer.text.automata.facts import topological
from ninfer.text.emitter.elimination import eliminated
from ninfer.text.emitter.pattern import whole
from ninfer.text.emitter.productions import (
    NOTHING,
    Alternative,
    Body,
    Expression,
    Machine,
    Text,
    one_of,
)
from ninfer.text.emitter.unfolding import unfolded

_MANY_STATES = 256
_REMEMBERED_STATES = 256
"""States up to which a form is remembered; an integer of 64 bits has 119."""


def automaton_body(dfa: Dfa) -> Body | Machine:
    """Return the form of an automaton; small ones, such as the shared rules', are remembered.

    Math: an automaton without branches is a sequence. Otherwise one expression, where that has
          about as many states, or where the core would not share the productions; otherwise one
          production per state, chains of single steps joined, which stays linear for all.
    """
    return _remembered(dfa) if dfa.state_count <= _REMEMBERED_STATES else _form(dfa)


@lru_cache(maxsize=256)
def _remembered(dfa: Dfa) -> Body | Machine:
    return _form(dfa)


def _form(dfa: Dfa) -> Body | Machine:
    if dfa.is_empty:
        return NOTHING
    sequence = _sequence(dfa)
    if sequence is not None:
        return (sequence,)
    first = CharacterSet.of((low, high) for low, high, _ in dfa.edges[0])
    nullable = bool(dfa.accepting[0])
    pattern = unfolded(dfa) or eliminated(dfa)
    if pattern is None or pattern.atoms > _atoms_allowed(dfa):
        return Machine(dfa, first, nullable)
    return ((Expression(whole(pattern), first, nullable),),)


def _atoms_allowed(dfa: Dfa) -> int:
    """Return how many states an expression may have to be worth more than productions.

    Productions that call each other in a circle are compiled anew in every grammar, and hundreds
    of productions cost more than their states.
    """
    steps = sum(len({target for _, _, target in out}) for out in dfa.edges)
    if dfa.state_count > _MANY_STATES or _has_circle(dfa):
        return 4 * steps
    return steps + steps // 2


def _has_circle(dfa: Dfa) -> bool:
    """Return whether a cycle has more than one state."""
    without_loops = tuple(
        tuple(edge for edge in out if edge[2] != state) for state, out in enumerate(dfa.edges)
    )
    return topological(Dfa(without_loops, dfa.accepting)) is None


def _sequence(dfa: Dfa) -> Alternative | None:
    """Return the steps of an automaton without branches, None for any other."""
    steps: Alternative = ()
    state = 0
    while dfa.edges[state]:
        targets = {target for _, _, target in dfa.edges[state]}
        if dfa.accepting[state] or len(targets) > 1 or len(steps) > dfa.state_count:
            return None
        step = one_of(CharacterSet.of((low, high) for low, high, _ in dfa.edges[state]))
        if steps and isinstance(step, Text) and isinstance(steps[-1], Text):
            steps = (*steps[:-1], Text(steps[-1].text + step.text))
        else:
            steps = (*steps, step)
        state = targets.pop()
    return steps
