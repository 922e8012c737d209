"""Strings that are a counted run over one set of characters, without an automaton.

The core counts a plain repetition of one class in a single state, so a bound costs nothing per
character. An escape ends such a run: what may follow is a run with the room that is left, and the
room is rounded down so that few runs are needed. A string with many escapes near its upper bound
may therefore have no spelling here; no string outside the bounds has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from ninfer.text.automata.characters import ANY_CHARACTER, CharacterSet
from ninfer.text.automata.dfa import Dfa
from ninfer.text.grammar import (
    NOTHING,
    Automaton,
    Characters,
    Literal,
    Node,
    alternation,
    concatenation,
    repetition,
)
from ninfer.text.schema.escaping import BACKSLASH, PLAIN, escape_letters, quoted
from ninfer.text.schema.keys import REST, behind_quote, shared_rules
from ninfer.text.schema.rules import Rules

_QUOTE = Literal('"')
_CHAIN_LIMIT = 16
_EXACT_LIMIT = 8
_SKIPS = (1, 5)
"""How many of the rooms below a bound a run may use up, by its length."""


@cache
def _lattice(room: int) -> tuple[int, ...]:
    """Return the rooms that are kept apart, the same for all bounds: finer where less is left."""
    rooms: list[int] = []
    while room > 0:
        step = 1 << max(room.bit_length() - 4, 0)
        room = (room - 1) // step * step
        rooms.append(room)
    return tuple(rooms)


def rooms_below(high: int) -> list[int]:
    """Return the rooms that may be left behind an escape, most room first."""
    rooms = _lattice(high)
    if high <= _EXACT_LIMIT:
        return list(rooms)
    return [rooms[min(skip, len(rooms)) - 1] for skip in _SKIPS]


class Run(NamedTuple):
    """Strings of ``low`` to ``high`` characters of a set; None has no upper bound."""

    members: CharacterSet
    low: int
    high: int | None


def run_of(dfa: Dfa) -> Run | None:
    """Return the run that an automaton describes, None where it describes anything else."""
    members: CharacterSet | None = None
    state, low, length = 0, None, 0
    seen: set[int] = set()
    while True:
        if dfa.accepting[state]:
            low = length if low is None else low
        elif low is not None:
            return None
        edges = dfa.edges[state]
        if not edges:
            return None if low is None or members is None else Run(members, low, length)
        reads = CharacterSet.of((a, b) for a, b, _ in edges)
        if len({t for _, _, t in edges}) > 1 or (members is not None and reads != members):
            return None
        members = reads
        seen.add(state)
        state = edges[0][2]
        if state in seen:
            loops = state == max(seen) and bool(dfa.accepting[state])
            return Run(members, low, None) if loops and low is not None else None
        length += 1


def run_node(run: Run, rules: Rules) -> Node:
    """Return the quoted strings of a run."""
    return rules.named(
        concatenation(_QUOTE, _Spelled(run.members, rules).behind(run.low, run.high))
    )


class _Spelled:
    """The runs over one set of characters; letters are a rule, for the core counts to a text."""

    def __init__(self, members: CharacterSet, rules: Rules) -> None:
        self.members, self.rules = members, rules
        self.plain = Characters(members & PLAIN)
        self.letters = rules.named(escape_letters(members), is_sure=True)

    def behind(self, low: int, high: int | None) -> Node:
        """Return what may follow the opening quote or an escape."""
        key = (self.members, low, high)
        if key not in self.rules.made:
            body = self._unbounded(low) if high is None else self._bounded(low, high)
            self.rules.made[key] = self.rules.named(body, is_sure=True)
        return self.rules.made[key]

    def _bounded(self, low: int, high: int) -> Node:
        options = [concatenation(repetition(self.plain, low, high), _QUOTE)]
        if high and self.letters != NOTHING:
            options += self._escaped(low, high)
        return alternation(*(self.rules.named(option, is_sure=True) for option in options))

    def _escaped(self, low: int, high: int) -> Iterator[Node]:
        """Yield runs that end at an escape, and what may follow."""
        first = 0
        for room in rooms_below(high):
            last, needed = high - 1 - room, max(low - 1 - first, 0)
            if needed <= room and first <= last:
                after = self.behind(needed, room)
                run = repetition(self.plain, first, last)
                yield concatenation(run, BACKSLASH, self.letters, after)
                first = last + 1

    def _unbounded(self, low: int) -> Node:
        """Return at least ``low`` characters, then any number of them."""
        if not low:
            return self._rest()
        letters = self.letters
        if low <= _CHAIN_LIMIT:
            after = self.behind(low - 1, None)
            steps = [concatenation(self.plain, after)]
            if letters != NOTHING:
                steps.append(concatenation(BACKSLASH, letters, after))
            return alternation(*steps)
        plain = concatenation(repetition(self.plain, low, low), self._rest())
        if letters == NOTHING:
            return plain
        run = low // 2
        escaped = concatenation(
            repetition(self.plain, run, low - 1),
            BACKSLASH,
            letters,
            self.behind(low - 1 - run, None),
        )
        return alternation(self.rules.named(plain), self.rules.named(escaped))

    def _rest(self) -> Node:
        if self.members == ANY_CHARACTER:
            return self.rules.shared(REST, shared_rules())
        loop = Dfa((tuple((a, b, 0) for a, b in self.members.ranges),), b"\1")
        return self.rules.named(Automaton(behind_quote(quoted(loop))))
