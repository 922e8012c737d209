"""The minimal automaton of a finite set of words."""

from __future__ import annotations

from collections.abc import Sequence

from ninfer.text.automata.dfa import NOTHING, Dfa
from ninfer.text.automata.table import canonical

_Key = tuple[bool, tuple[tuple[str, int], ...]]


def word_automaton(words: Sequence[str]) -> Dfa:
    """Return the minimal acyclic automaton of sorted words without repetitions.

    Math: states are the classes of equal futures, built right to left along the sorted list
          (Daciuk, Mihov, Watson, Watson 2000), so memory stays at the size of the result.
    """
    if not words:
        return NOTHING
    register: dict[_Key, int] = {}
    keys: list[_Key] = []
    open_states: list[tuple[bool, list[tuple[str, int]]]] = [(False, [])]
    labels: list[str] = []

    def close_down_to(depth: int) -> None:
        while len(open_states) > depth + 1:
            final, edges = open_states.pop()
            key = (final, tuple(edges))
            if key not in register:
                register[key] = len(keys)
                keys.append(key)
            open_states[-1][1].append((labels.pop(), register[key]))

    previous = ""
    for word in words:
        shared = _shared_length(previous, word)
        close_down_to(shared)
        for character in word[shared:]:
            labels.append(character)
            open_states.append((False, []))
        open_states[-1] = (True, open_states[-1][1])
        previous = word
    close_down_to(0)
    final, edges = open_states[0]
    return _numbered(keys, (final, tuple(edges)))


def _shared_length(first: str, second: str) -> int:
    length = 0
    for a, b in zip(first, second, strict=False):
        if a != b:
            break
        length += 1
    return length


def _numbered(keys: list[_Key], start: _Key) -> Dfa:
    """Return the automaton with its start first; children come before parents in ``keys``."""
    states = [start, *reversed(keys)]
    edges = [[(ord(c), ord(c), len(keys) - target) for c, target in out] for _, out in states]
    return canonical(edges, [final for final, _ in states])
