"""The form of an automaton: a plain sequence, one expression, or a machine of its own."""

from __future__ import annotations

from functools import lru_cache

from ninfer.text.automata.characters import CharacterSet
from ninfer.text.automata.dfa import Dfa
from ninfer.text.emitter.elimination import eliminated
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


@lru_cache(maxsize=512)
def automaton_body(dfa: Dfa) -> Body | Machine:
    """Return the form of an automaton; those of the shared rules are remembered.

    Math: an automaton without branches is a sequence. Otherwise one expression, as long as it
          stays linear in the edges; otherwise one production per state, chains of single steps
          joined, which stays linear for every automaton.
    """
    if dfa.is_empty:
        return NOTHING
    sequence = _sequence(dfa)
    if sequence is not None:
        return (sequence,)
    first = CharacterSet.of((low, high) for low, high, _ in dfa.edges[0])
    nullable = bool(dfa.accepting[0])
    pattern = unfolded(dfa) or eliminated(dfa)
    if pattern is not None:
        return ((Expression(pattern, first, nullable),),)
    return Machine(dfa, first, nullable)


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
