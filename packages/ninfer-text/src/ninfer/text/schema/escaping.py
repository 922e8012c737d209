"""JSON string escaping applied to an automaton of decoded characters.

Only canonical escapes are produced, so every decoded string has exactly one spelling.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from ninfer.text.automata.characters import CharacterSet
from ninfer.text.automata.dfa import Dfa, Edge
from ninfer.text.automata.table import canonical
from ninfer.text.grammar import Literal, Node, alternation

_SHORT = {0x22: '"', 0x5C: "\\", 0x08: "b", 0x0C: "f", 0x0A: "n", 0x0D: "r", 0x09: "t"}
_ESCAPED = (*range(0x20), 0x22, 0x5C)
PLAIN = ~CharacterSet.of((c, c) for c in _ESCAPED)
"""Characters that a JSON string holds as themselves."""


def escape_letters(members: CharacterSet) -> Node:
    """Return what stands behind the backslash of each member that needs one."""
    return alternation(*(Literal(_SHORT.get(c) or f"u{c:04x}") for c in _ESCAPED if c in members))


BACKSLASH = Literal("\\")


class _Layout(NamedTuple):
    """How characters are escaped: by a letter, or by a first digit and a second one."""

    letters: tuple[tuple[int, int], ...]
    digits: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]


@lru_cache(maxsize=64)
def _layout(characters: tuple[int, ...]) -> _Layout:
    letters = tuple((ord(_SHORT[c]), c) for c in characters if c in _SHORT)
    numbered = [c for c in characters if c not in _SHORT]
    digits = (
        (ord(str(high)), tuple((ord(f"{c & 15:x}"), c) for c in numbered if c >> 4 == high))
        for high in (0, 1)
    )
    return _Layout(letters, tuple((high, seconds) for high, seconds in digits if seconds))


@lru_cache(maxsize=256)
def _escaped_within(low: int, high: int) -> tuple[int, ...]:
    return tuple(c for c in _ESCAPED if low <= c <= high)


def quoted(dfa: Dfa) -> Dfa:
    """Return the JSON spellings, quotes included, of an automaton's words.

    Math: minimal where ``dfa`` is, but for escapes that different states share.
    """
    spelled = _Spelled(offset=1)
    final = spelled.add(())
    states = len(dfa.edges)
    bodies = [
        spelled.state(_body(dfa.edges[state], spelled), closing=bool(dfa.accepting[state]))
        for state in range(states)
    ]
    return spelled.automaton(bodies, final)


def _body(edges: tuple[Edge, ...], spelled: _Spelled) -> list[Edge]:
    """Return the edges of one state, escapes routed through states of their own."""
    out: list[Edge] = []
    escapes: dict[int, int] = {}
    for low, high, target in edges:
        if low > 0x5C:
            out.append((low, high, target))
            continue
        out += [
            (max(low, a), min(high, b), target)
            for a, b in PLAIN.ranges
            if max(low, a) <= min(high, b)
        ]
        escapes.update(dict.fromkeys(_escaped_within(low, high), target))
    if escapes:
        out.append((0x5C, 0x5C, spelled.escape(escapes)))
    return out


@dataclass(slots=True)
class _Spelled:
    """States of the spelled automaton; references to decoded states are marked negative."""

    offset: int
    edges: list[list[Edge]] = field(default_factory=list)
    shared: dict[tuple[Edge, ...], int] = field(default_factory=dict)
    closing: list[bool] = field(default_factory=list)

    def add(self, edges: tuple[Edge, ...]) -> int:
        found = self.shared.get(edges)
        if found is None:
            found = self.shared[edges] = len(self.edges)
            self.edges.append(list(edges))
        return found

    def state(self, body: list[Edge], *, closing: bool) -> list[Edge]:
        self.closing.append(closing)
        return body

    def escape(self, targets: dict[int, int]) -> int:
        """Return the state behind a backslash; targets are decoded states."""
        layout = _layout(tuple(targets))
        out = [(letter, letter, ~targets[c]) for letter, c in layout.letters]
        if layout.digits:
            out.append((ord("u"), ord("u"), self._unicode(layout, targets)))
        return self.add(tuple(sorted(out)))

    def _unicode(self, layout: _Layout, targets: dict[int, int]) -> int:
        rows = []
        for high, digits in layout.digits:
            state = self.add(tuple((digit, digit, ~targets[c]) for digit, c in digits))
            rows.append((high, high, state))
        state = self.add(tuple(rows))
        for _ in range(2):
            state = self.add(((ord("0"), ord("0"), state),))
        return state

    def automaton(self, bodies: list[list[Edge]], final: int) -> Dfa:
        """Return the whole machine: opening quote, decoded states, escape states."""
        first = 1
        base = first + len(bodies)
        out: list[list[Edge]] = [[(0x22, 0x22, first)]]
        for body, closing in zip(bodies, self.closing, strict=True):
            edges = [
                (low, high, base + t if low == high == 0x5C else first + t) for low, high, t in body
            ]
            if closing:
                edges.append((0x22, 0x22, base + final))
            out.append(sorted(edges))
        for body in self.edges:
            out.append([(a, b, first + ~t if t < 0 else base + t) for a, b, t in body])
        return canonical(out, bytes(i == base + final for i in range(len(out))))
