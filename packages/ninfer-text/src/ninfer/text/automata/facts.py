"""What can be said about the language of an automaton: size, lengths, its words in order."""

from __future__ import annotations

import random
from collections.abc import Iterator

from ninfer.text.automata.dfa import Dfa


def is_finite(dfa: Dfa) -> bool:
    """Return whether the language has finitely many words; assumes a trimmed automaton."""
    return topological(dfa) is not None


def topological(dfa: Dfa) -> list[int] | None:
    """Return the states in an order that every edge follows; None when there is a cycle."""
    entering = [0] * dfa.state_count
    for edges in dfa.edges:
        for _, _, target in edges:
            entering[target] += 1
    order = [state for state, count in enumerate(entering) if count == 0]
    for state in order:
        for _, _, target in dfa.edges[state]:
            entering[target] -= 1
            if entering[target] == 0:
                order.append(target)
    return order if len(order) == dfa.state_count else None


def shortest_characters(dfa: Dfa) -> int | None:
    """Return the length of a shortest word, or None for the empty language."""
    frontier, characters = {0}, 0
    seen = {0}
    while frontier:
        if any(dfa.accepting[state] for state in frontier):
            return characters
        frontier = {t for state in frontier for _, _, t in dfa.edges[state]} - seen
        seen |= frontier
        characters += 1
    return None


def longest_characters(dfa: Dfa) -> int | None:
    """Return the length of a longest word; None when there is no longest."""
    order = topological(dfa)
    if order is None:
        return None
    longest = [0] * dfa.state_count
    for state in reversed(order):
        longest[state] = max((1 + longest[t] for _, _, t in dfa.edges[state]), default=0)
    return longest[0]


def count_words(dfa: Dfa) -> int | None:
    """Return the number of words; None when they are infinitely many."""
    order = topological(dfa)
    if order is None:
        return None
    counts = [0] * dfa.state_count
    for state in reversed(order):
        counts[state] = dfa.accepting[state] + sum(
            (high - low + 1) * counts[t] for low, high, t in dfa.edges[state]
        )
    return counts[0]


def words(dfa: Dfa) -> Iterator[str]:
    """Yield the words, shorter ones first, equally long ones by code point.

    Effects: never ends for an infinite language.
    """
    layer = [("", 0)]
    while layer:
        yield from (text for text, state in layer if dfa.accepting[state])
        layer = [
            (text + chr(code), target)
            for text, state in layer
            for low, high, target in dfa.edges[state]
            for code in range(low, high + 1)
        ]


FREE_CHARACTERS = 64
"""Steps of a random walk before it heads for the nearest end."""


def sample_word(dfa: Dfa, random_source: random.Random, stop_chance: float = 0.25) -> str:
    """Return a random word of a trimmed, nonempty language.

    Math: at an accepting state the walk ends with ``stop_chance``; otherwise an edge is drawn
          evenly, then a character of it evenly. After FREE_CHARACTERS only edges that come
          nearer to an accepting state are drawn, so that the walk ends in any automaton.
    """
    distances = _distances_to_end(dfa)
    text: list[str] = []
    state = 0
    while True:
        edges = dfa.edges[state]
        heads_home = len(text) >= FREE_CHARACTERS
        if dfa.accepting[state] and (
            heads_home or not edges or random_source.random() < stop_chance
        ):
            return "".join(text)
        if heads_home:
            edges = tuple(edge for edge in edges if distances[edge[2]] < distances[state])
        low, high, state = random_source.choice(edges)
        text.append(chr(random_source.randint(low, high)))


def _distances_to_end(dfa: Dfa) -> list[int]:
    entering: list[list[int]] = [[] for _ in range(dfa.state_count)]
    for state, edges in enumerate(dfa.edges):
        for _, _, target in edges:
            entering[target].append(state)
    distances = [0 if accepts else dfa.state_count for accepts in dfa.accepting]
    queue = [state for state, accepts in enumerate(dfa.accepting) if accepts]
    for state in queue:
        for source in entering[state]:
            if distances[source] == dfa.state_count:
                distances[source] = distances[state] + 1
                queue.append(source)
    return distances
