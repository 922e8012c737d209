"""Strings that are a counted run over one set of characters, without an automaton.

The core counts a plain repetition of one class in a single state, so a bound costs nothing per
character. An escape ends such a run: what may follow is a run with the room that is left, and the
room is rounded down so that few runs are needed. A string with many escapes near its upper bound
may therefore have no spelling here; no string outside the bounds has one.
"""

from __future__ import annotations

from dataclasses import dataclass
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
_SHORT_RUN = 8


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
    rules.share(shared_rules())
    return rules.named(
        concatenation(_QUOTE, _Spelled(run.members, rules).behind(run.low, run.high))
    )


@dataclass(frozen=True, slots=True)
class _Spelled:
    members: CharacterSet
    rules: Rules

    @property
    def plain(self) -> Node:
        return Characters(self.members & PLAIN)

    @property
    def letters(self) -> Node:
        """Return what may follow a backslash, as a rule: the core counts only up to a text."""
        return self.rules.named(escape_letters(self.members))

    def behind(self, low: int, high: int | None) -> Node:
        """Return what may follow the opening quote or an escape."""
        if high is None:
            return self._unbounded(low)
        options = [concatenation(repetition(self.plain, low, high), _QUOTE)]
        options.append(self._escaped(low, high))
        return alternation(*(self.rules.named(o) for o in options if o != NOTHING))

    def _escaped(self, low: int, high: int) -> Node:
        """Return a run that ends at an escape, and what may follow it."""
        letters = self.letters
        if letters == NOTHING or not high:
            return NOTHING
        needed = max(low - 1, 0)
        run = min(max(high // 4, min(high - 1, _SHORT_RUN)), high - 1 - needed)
        after = self.behind(needed, high - 1 - run)
        return concatenation(repetition(self.plain, 0, run), BACKSLASH, letters, after)

    def _unbounded(self, low: int) -> Node:
        """Return at least ``low`` characters, then any number of them."""
        if not low:
            return self._rest()
        letters = self.letters
        if low <= _CHAIN_LIMIT:
            after = self.rules.named(self._unbounded(low - 1))
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
            self.rules.named(self._unbounded(low - 1 - run)),
        )
        return alternation(self.rules.named(plain), self.rules.named(escaped))

    def _rest(self) -> Node:
        if self.members == ANY_CHARACTER:
            return REST
        loop = Dfa((tuple((a, b, 0) for a, b in self.members.ranges),), b"\1")
        return self.rules.named(Automaton(behind_quote(quoted(loop))))
