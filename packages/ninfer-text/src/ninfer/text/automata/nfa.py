"""Nondeterministic automata: expressions with their repetitions written out.

Every state has at most one edge that reads a character, and any number of jumps that read nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ninfer.text.automata.characters import CharacterSet
from ninfer.text.automata.expression import Either, Expression, One, Repeat, Then, require_size
from ninfer.text.automata.limits import STATE_LIMIT, Work

_STEPS_A_STATE = 8
_STEPS_A_VISIT = 4


@dataclass(slots=True)
class Nfa:
    """A nondeterministic automaton with one start and one accepting state."""

    reads: list[tuple[CharacterSet, int] | None] = field(default_factory=list)
    jumps: list[list[int]] = field(default_factory=list)
    start: int = 0
    accept: int = 0

    @classmethod
    def of(cls, expression: Expression, limit: int = STATE_LIMIT, work: Work | None = None) -> Nfa:
        """Return the automaton of an expression.

        Raises: AutomatonLimit — its written-out form has more than ``limit`` states, or ``work``
                has no more steps.
        """
        states = require_size(expression, limit)
        if work is not None:
            work.spend(_STEPS_A_STATE * states)
        nfa = cls()
        nfa.accept = nfa._state()
        nfa.start = nfa._build(expression, nfa.accept)
        return nfa

    def closures(self, work: Work) -> dict[int, tuple[int, ...]]:
        """Return for every head the reading or accepting states it reaches by jumps alone.

        Raises: AutomatonLimit — there are no more steps.
        """
        closures: dict[int, tuple[int, ...]] = {}
        for head in self.heads():
            reached = self._reached_by_jumps(head)
            work.spend(_STEPS_A_VISIT * len(reached))
            reading = (s for s in reached if self.reads[s] is not None or s == self.accept)
            closures[head] = tuple(sorted(reading))
        return closures

    def heads(self) -> list[int]:
        """Return the start and the states that reads lead to."""
        return sorted({self.start, *(reads[1] for reads in self.reads if reads is not None)})

    def _reached_by_jumps(self, state: int) -> set[int]:
        reached = {state}
        pending = [state]
        while pending:
            for target in self.jumps[pending.pop()]:
                if target not in reached:
                    reached.add(target)
                    pending.append(target)
        return reached

    def _state(
        self, reads: tuple[CharacterSet, int] | None = None, jumps: list[int] | None = None
    ) -> int:
        self.reads.append(reads)
        self.jumps.append(jumps or [])
        return len(self.reads) - 1

    def _build(self, expression: Expression, after: int) -> int:
        """Add the states of an expression that continues at ``after``; return its first state."""
        match expression:
            case One(members):
                return self._state(reads=(members, after))
            case Then(parts):
                for part in reversed(parts):
                    after = self._build(part, after)
                return after
            case Either(parts):
                return self._state(jumps=[self._build(part, after) for part in parts])
            case Repeat(item, low, high):
                return self._repeat(item, low, high, after)

    def _repeat(self, item: Expression, low: int, high: int | None, after: int) -> int:
        if high is None:
            first = self._state()
            self.jumps[first] = [self._build(item, first), after]
        else:
            first = after
            for _ in range(high - low):
                first = self._state(jumps=[self._build(item, first), after])
        for _ in range(low):
            first = self._build(item, first)
        return first
