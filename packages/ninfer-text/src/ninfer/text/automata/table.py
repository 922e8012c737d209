"""The working form of a deterministic automaton: edges by character class instead of by range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ninfer.text.automata.alphabet import Alphabet
from ninfer.text.automata.characters import CharacterSet, Range
from ninfer.text.automata.dfa import Dfa, Edge
from ninfer.text.automata.limits import RANGE_LIMIT, AutomatonLimit


@dataclass(slots=True)
class Table:
    """``rows[s]`` maps a class to the next state; the start is state 0; absent classes refuse."""

    rows: list[dict[int, int]]
    accepting: bytearray
    ranges: Sequence[Sequence[Range]]

    def to_dfa(self) -> Dfa:
        """Return the automaton in canonical order, edges by range.

        Raises: AutomatonLimit — there are too many edges.
        """
        sizes = [len(ranges) for ranges in self.ranges]
        if sum(sizes[c] for row in self.rows for c in row) > RANGE_LIMIT:
            raise AutomatonLimit("automaton edges", RANGE_LIMIT)
        return canonical([self._edges(row) for row in self.rows], self.accepting)

    def _edges(self, row: dict[int, int]) -> list[Edge]:
        ranges = self.ranges
        return sorted((low, high, t) for c, t in row.items() for low, high in ranges[c])

    def without_dead_states(self) -> Table | None:
        """Return the part that can still accept, or None when nothing is accepted."""
        sources: list[list[int]] = [[] for _ in self.rows]
        for state, row in enumerate(self.rows):
            for target in row.values():
                sources[target].append(state)
        living = {state for state, final in enumerate(self.accepting) if final}
        pending = list(living)
        while pending:
            for source in sources[pending.pop()]:
                if source not in living:
                    living.add(source)
                    pending.append(source)
        if 0 not in living:
            return None
        if len(living) == len(self.rows):
            return self
        numbers = {state: number for number, state in enumerate(sorted(living))}
        rows = [
            {c: numbers[t] for c, t in self.rows[state].items() if t in numbers}
            for state in numbers
        ]
        return Table(rows, bytearray(self.accepting[s] for s in numbers), self.ranges)


def tables(*automata: Dfa) -> list[Table]:
    """Return the automata over one common alphabet."""
    alphabet = Alphabet(
        CharacterSet(((low, high),))
        for dfa in automata
        for out in dfa.edges
        for low, high, _ in out
    )
    return [_table(dfa, alphabet) for dfa in automata]


def _table(dfa: Dfa, alphabet: Alphabet) -> Table:
    rows = [
        {
            character: target
            for low, high, target in out
            for character in alphabet.classes[CharacterSet(((low, high),))]
        }
        for out in dfa.edges
    ]
    return Table(rows, bytearray(dfa.accepting), alphabet.ranges)


def canonical(edges: Sequence[Sequence[Edge]], accepting: Sequence[int]) -> Dfa:
    """Return the automaton of sorted edges, its states as a breadth-first walk meets them.

    Effects: unreachable states are gone; neighbouring ranges with one target are one edge. Two
             minimal automata of one language become equal values.
    """
    numbers = {0: 0}
    order = [0]
    renumbered: list[tuple[Edge, ...]] = []
    for state in order:
        merged: list[Edge] = []
        for low, high, target in edges[state]:
            number = numbers.get(target)
            if number is None:
                number = numbers[target] = len(order)
                order.append(target)
            if merged and merged[-1][2] == number and merged[-1][1] == low - 1:
                merged[-1] = (merged[-1][0], high, number)
            else:
                merged.append((low, high, number))
        renumbered.append(tuple(merged))
    return Dfa(tuple(renumbered), bytes(accepting[state] for state in order))
