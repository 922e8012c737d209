"""An automaton as one regular expression, where that stays short.

The core keeps one expression as one machine: its states cost less to visit than productions, and
it is shared between grammars even where it has cycles.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from ninfer.text.automata.dfa import Dfa
from ninfer.text.emitter.pattern import (
    DEPTH_LIMIT,
    EMPTY_WORD,
    Labels,
    Pattern,
    either,
    sequence,
    starred,
    text_budget,
)

STATE_LIMIT = 512
"""States up to which an expression is looked for: with more, those with cycles rarely have one."""

_BRANCH_COST = 32
_HOPELESS_COST = 512
_BEFORE, _AFTER = -1, -2


def eliminated(dfa: Dfa) -> Pattern | None:
    """Return an expression of the automaton's words, or None when it would not stay short.

    Math: states are eliminated, those first whose going lengthens the labels least and that do not
          branch, so that alternatives rarely share a beginning; the result is at most linear in
          the automaton's edges. Equal automata give equal texts.
    """
    return _Elimination(dfa).run() if dfa.state_count <= STATE_LIMIT else None


@dataclass(slots=True)
class _State:
    leaving: dict[int, Pattern] = field(default_factory=dict)
    entering: set[int] = field(default_factory=set)
    leaving_characters: int = 0
    entering_characters: int = 0


class _Elimination:
    def __init__(self, dfa: Dfa) -> None:
        self._states = {s: _State() for s in range(-2, dfa.state_count)}
        self._characters = 0
        self._put(_BEFORE, 0, EMPTY_WORD)
        labels = Labels(dfa)
        for state in range(dfa.state_count):
            for target, label in labels.of(state).items():
                self._put(state, target, label)
            if dfa.accepting[state]:
                self._put(state, _AFTER, EMPTY_WORD)
        self._budget = self._characters + text_budget(dfa)

    def run(self) -> Pattern | None:
        costs = {state: self._cost(state) for state in self._states if state >= 0}
        queue = [(cost, -state) for state, cost in costs.items()]
        heapify(queue)
        while queue:
            cost, negative = heappop(queue)
            if costs.get(-negative) != cost:
                continue
            del costs[-negative]
            neighbours = self._eliminate(-negative) if cost < _HOPELESS_COST else None
            if neighbours is None:
                return None
            for neighbour in neighbours & costs.keys():
                costs[neighbour] = self._cost(neighbour)
                heappush(queue, (costs[neighbour], -neighbour))
        final = self._states[_BEFORE].leaving.get(_AFTER)
        return final

    def _cost(self, number: int) -> int:
        """Return by how many characters the labels grow when a state goes, and a fine to branch."""
        state = self._states[number]
        has_loop = number in state.leaving
        loop = len(state.leaving[number].text) if has_loop else 0
        outs, ins = len(state.leaving) - has_loop, len(state.entering) - has_loop
        growth = (outs - 1) * (state.entering_characters - loop)
        growth += (ins - 1) * (state.leaving_characters - loop) + (ins * outs - 1) * loop
        return growth + _BRANCH_COST * max(outs - 1, 0)

    def _eliminate(self, number: int) -> set[int] | None:
        """Join every way through a state; return its neighbours, or None over a limit."""
        state = self._states[number]
        loop = self._take(number, number)
        around = EMPTY_WORD if loop is None else starred(loop)
        tails = [(target, self._take(number, target)) for target in list(state.leaving)]
        sources = sorted(state.entering)
        for source in sources:
            head = self._take(source, number)
            for target, tail in tails:
                if head is not None and tail is not None:
                    self._put(source, target, sequence(sequence(head, around), tail))
                    if self._states[source].leaving[target].depth > DEPTH_LIMIT:
                        return None
            if self._characters > self._budget:
                return None
        del self._states[number]
        return {*sources, *(target for target, _ in tails)}

    def _take(self, source: int, target: int) -> Pattern | None:
        """Remove the label between two states and return it."""
        label = self._states[source].leaving.pop(target, None)
        if label is not None:
            self._states[target].entering.discard(source)
            self._count(source, target, -len(label.text))
        return label

    def _put(self, source: int, target: int, label: Pattern) -> None:
        """Add a label between two states to the one that is there."""
        present = self._take(source, target)
        if present is not None:
            label = either(present, label)
        self._states[source].leaving[target] = label
        self._states[target].entering.add(source)
        self._count(source, target, len(label.text))

    def _count(self, source: int, target: int, characters: int) -> None:
        self._states[source].leaving_characters += characters
        self._states[target].entering_characters += characters
        self._characters += characters
