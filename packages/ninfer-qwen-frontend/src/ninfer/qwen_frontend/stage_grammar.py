"""Languages of framing: thinking with its close, and texts up to or without a marker.

Built from the same texts that the decoders look for.

Source: specification 5.1.
"""

from __future__ import annotations

from ninfer.qwen_frontend.facts import ReasoningMarkers
from ninfer.text.automata.characters import ANY_CHARACTER, CharacterSet
from ninfer.text.automata.dfa import Dfa, Edge
from ninfer.text.grammar import Automaton, Grammar, concatenation, join


def with_reasoning(grammar: Grammar, markers: ReasoningMarkers) -> Grammar:
    """Return free thinking, the canonical close, and then the given language."""
    thinking = Automaton(first_occurrence(markers.canonical_close))
    return join([grammar], lambda entries: concatenation(thinking, entries[0]))


def first_occurrence(text: str) -> Dfa:
    """Return the texts that end with ``text`` and hold it nowhere before.

    Math: state s = length of the longest suffix read so far that is a prefix of ``text``.
    """
    rows = [_edges(text, state) for state in range(len(text))]
    return Dfa((*rows, ()), bytes(len(text)) + b"\1")


def without(text: str) -> Dfa:
    """Return the texts that do not hold ``text`` anywhere."""
    last = len(text)
    rows = [tuple(e for e in _edges(text, state) if e[2] != last) for state in range(last)]
    return Dfa(tuple(rows), b"\1" * last)


def _edges(text: str, state: int) -> tuple[Edge, ...]:
    targets = {character: _longest_border(text, state, character) for character in set(text)}
    edges = [(ord(c), ord(c), target) for c, target in targets.items() if target]
    rest = ANY_CHARACTER - CharacterSet.from_text("".join(c for c, t in targets.items() if t))
    return tuple(sorted([*edges, *((low, high, 0) for low, high in rest.ranges)]))


def _longest_border(text: str, state: int, character: str) -> int:
    read = text[:state] + character
    return next(n for n in range(len(read), -1, -1) if read.endswith(text[:n]))
