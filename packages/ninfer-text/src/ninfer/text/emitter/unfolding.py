"""An acyclic automaton as one regular expression, shared ends written once.

Keeps beginnings shared, so that the core never follows two alternatives at once.
"""

from __future__ import annotations

from typing import NamedTuple

from ninfer.text.automata.dfa import Dfa
from ninfer.text.automata.facts import topological
from ninfer.text.emitter.pattern import (
    DEPTH_LIMIT,
    EMPTY_WORD,
    Labels,
    Pattern,
    either,
    sequence,
    text_budget,
)


class _Exits(NamedTuple):
    """How a state may go on: labels with their targets, and whether it may end."""

    ways: tuple[tuple[int, Pattern], ...]
    ends: bool


class _Plan(NamedTuple):
    """A state's text: maybe a step to ``next_state``, whose own exits are these, then the exits."""

    exits: _Exits
    next_state: int | None = None
    label: Pattern = EMPTY_WORD


def unfolded(dfa: Dfa) -> Pattern | None:
    """Return an expression of the automaton's words; None for cycles or when it would be long.

    Math: x = (a y)? z where y goes on as x does but for the step a, as the digits of a number do;
          otherwise the union of all steps, each with the whole text of its target.
    """
    order = topological(dfa)
    if order is None:
        return None
    order.reverse()
    plans = _plans(dfa, order)
    if not _stays_short(dfa, order, plans):
        return None
    heads: dict[int, Pattern] = {}
    tails: dict[_Exits, Pattern] = {}
    patterns: dict[int, Pattern] = {}
    for state in order:
        exits, following, label = plans[state]
        head = EMPTY_WORD
        if following is not None:
            head = sequence(label, heads[following])._replace(optional=True)
        if exits not in tails:
            tails[exits] = _union(exits, patterns)
        heads[state] = head
        patterns[state] = sequence(head, tails[exits])
        if patterns[state].depth > DEPTH_LIMIT:
            return None
    return patterns[0]


def _plans(dfa: Dfa, order: list[int]) -> dict[int, _Plan]:
    spelled = Labels(dfa)
    plans: dict[int, _Plan] = {}
    for state in order:
        ways = tuple(spelled.of(state).items())
        ends = bool(dfa.accepting[state])
        plans[state] = _Plan(_Exits(ways, ends))
        for number, (target, label) in enumerate(ways):
            others = plans[target].exits
            if others.ends == ends and len(others.ways) == len(ways) - 1:
                rest = _Exits(ways[:number] + ways[number + 1 :], ends)
                if rest == others:
                    plans[state] = _Plan(others, target, label)
                    break
    return plans


def _union(exits: _Exits, patterns: dict[int, Pattern]) -> Pattern:
    found: Pattern | None = EMPTY_WORD if exits.ends else None
    for target, label in exits.ways:
        way = sequence(label, patterns[target])
        found = way if found is None else either(found, way)
    return EMPTY_WORD if found is None else found


def _stays_short(dfa: Dfa, order: list[int], plans: dict[int, _Plan]) -> bool:
    budget = text_budget(dfa)
    for exits, _, label in plans.values():
        budget += len(label.text) + sum(len(way.text) for _, way in exits.ways)
    heads = [0] * dfa.state_count
    characters = [0] * dfa.state_count
    tails: dict[_Exits, int] = {}
    for state in order:
        exits, following, label = plans[state]
        if following is not None:
            heads[state] = len(label.text) + heads[following]
        if exits not in tails:
            tails[exits] = sum(len(way.text) + characters[target] for target, way in exits.ways)
        characters[state] = heads[state] + tails[exits]
        if characters[state] > budget:
            return False
    return True
