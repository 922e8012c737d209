"""Deterministic automata over characters, as values.

A state that leads nowhere is simply absent: what has no edge is refused.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

Edge = tuple[int, int, int]
"""First character, last character, target state."""


@dataclass(frozen=True, slots=True)
class Dfa:
    """A deterministic automaton whose start is state 0.

    ``edges[s]`` are the sorted, disjoint edges of state ``s``; ``accepting`` has a byte per state,
    0 or 1. Operations return trimmed automata: every state is reachable and can still accept,
    except that the empty language keeps its start.
    """

    edges: tuple[tuple[Edge, ...], ...]
    accepting: bytes
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.edges) != len(self.accepting) or not self.edges:
            raise ValueError("an automaton has at least one state, and each has an accepting byte")
        object.__setattr__(self, "_hash", hash((self.edges, self.accepting)))

    def __hash__(self) -> int:
        return self._hash

    @property
    def state_count(self) -> int:
        """Return the number of states."""
        return len(self.edges)

    @property
    def is_empty(self) -> bool:
        """Return whether no word is accepted; assumes a trimmed automaton."""
        return not any(self.accepting)

    def step(self, state: int, character: int) -> int | None:
        """Return the next state, or None where the character is refused."""
        edges = self.edges[state]
        index = bisect_right(edges, (character, 0x110000, 0)) - 1
        if index >= 0 and edges[index][0] <= character <= edges[index][1]:
            return edges[index][2]
        return None

    def run(self, text: str, state: int = 0) -> int | None:
        """Return the state after ``text``, or None where it is refused."""
        current: int | None = state
        for character in text:
            current = self.step(current, ord(character))  # type: ignore[arg-type]
            if current is None:
                return None
        return current

    def accepts(self, text: str) -> bool:
        """Return whether a text is a word of the language."""
        state = self.run(text)
        return state is not None and bool(self.accepting[state])


NOTHING = Dfa(((),), b"\0")
"""The empty language."""

EMPTY_WORD = Dfa(((),), b"\1")
"""The language of the empty word alone."""
