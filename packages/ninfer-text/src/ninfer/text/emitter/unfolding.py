"""An acyclic automaton as one regular expression: every state's text once for each way to it.

Keeps beginnings shared, so that the core never follows two alternatives at once.
"""

from __future__ import annotations

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


def unfolded(dfa: Dfa) -> Pattern | None:
    """Return an expression of the automaton's words; None for cycles or when it would be long."""
    order = topological(dfa)
    if order is None:
        return None
    order.reverse()
    spelled = Labels(dfa)
    labels = [spelled.of(state) for state in range(dfa.state_count)]
    if not _stays_short(dfa, order, labels):
        return None
    patterns: dict[int, Pattern] = {}
    for state in order:
        found: Pattern | None = EMPTY_WORD if dfa.accepting[state] else None
        for target, label in labels[state].items():
            way = sequence(label, patterns[target])
            found = way if found is None else either(found, way)
        if found is None or found.depth > DEPTH_LIMIT:
            return None
        patterns[state] = found
    return patterns[0]


def _stays_short(dfa: Dfa, order: list[int], labels: list[dict[int, Pattern]]) -> bool:
    budget = text_budget(dfa) + sum(len(label.text) for out in labels for label in out.values())
    characters = [0] * dfa.state_count
    for state in order:
        characters[state] = sum(
            len(label.text) + characters[target] for target, label in labels[state].items()
        )
        if characters[state] > budget:
            return False
    return True
