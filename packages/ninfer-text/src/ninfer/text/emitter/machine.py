"""Right-linear productions of an automaton, as text: one per state that several ways lead to."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import groupby
from operator import itemgetter

from ninfer.text.automata.characters import CharacterSet
from ninfer.text.automata.dfa import Dfa, Edge
from ninfer.text.emitter.spelling import spell_class


def spell_machine(dfa: Dfa, name: str) -> Iterator[tuple[str, str]]:
    """Yield a name and a right-hand side for every state that needs one, the start as ``name``.

    Math: a state that one way enters and that does not branch is written into the one before it.
    """
    own = _own(dfa)
    spell = cache(_spell_step)

    def way(target: int, edges: tuple[Edge, ...]) -> str:
        parts = [spell(tuple((low, high) for low, high, _ in edges))]
        while not own[target] and dfa.edges[target]:
            parts.append(spell(tuple((low, high) for low, high, _ in dfa.edges[target])))
            target = dfa.edges[target][0][2]
        return " ".join([*parts, _state_name(name, target)] if own[target] else parts)

    for state, edges in enumerate(dfa.edges):
        if own[state] or state == 0:
            steps = sorted(edges, key=itemgetter(2))
            ways = [way(t, tuple(group)) for t, group in groupby(steps, key=itemgetter(2))]
            spelled = " | ".join(['""', *ways] if dfa.accepting[state] else ways)
            yield _state_name(name, state), spelled


def _state_name(name: str, state: int) -> str:
    return f"{name}.{state}" if state else name


def _spell_step(ranges: tuple[tuple[int, int], ...]) -> str:
    return spell_class(CharacterSet.of(ranges))


def _own(dfa: Dfa) -> list[bool]:
    """Return which states are called: entered by several ways, or branching; never plain ends."""
    entering = [0] * dfa.state_count
    branching = [False] * dfa.state_count
    for state, edges in enumerate(dfa.edges):
        targets = {target for _, _, target in edges}
        branching[state] = len(targets) > 1 or bool(dfa.accepting[state])
        for target in targets:
            entering[target] += 1
    return [
        bool(dfa.edges[state]) and (entering[state] > 1 or (entering[state] == 1 and branches))
        for state, branches in enumerate(branching)
    ]
