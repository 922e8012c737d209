"""Minimisation of partial automata by refining states and transitions side by side."""

from __future__ import annotations

from collections.abc import Iterable

from ninfer.text.automata.dfa import NOTHING, Dfa
from ninfer.text.automata.table import Table


def minimal(table: Table) -> Dfa:
    """Return the canonical minimal automaton of a table.

    Math:   Valmari and Lehtinen 2008: blocks of states and of transitions split each other until
            stable, in m·log n for m transitions; equal languages give equal results.
    """
    living = table.without_dead_states()
    if living is None:
        return NOTHING
    return _quotient(living, _blocks(living)).to_dfa()


def _quotient(table: Table, blocks: list[int]) -> Table:
    """Return the automaton of blocks, the start's block first."""
    numbers: dict[int, int] = {}
    representatives: list[int] = []
    for state, block in enumerate(blocks):
        if block not in numbers:
            numbers[block] = len(representatives)
            representatives.append(state)
    rows = [{c: numbers[blocks[t]] for c, t in table.rows[s].items()} for s in representatives]
    return Table(rows, bytearray(table.accepting[s] for s in representatives), table.ranges)


def _blocks(table: Table) -> list[int]:
    """Return the number of every state's block."""
    states = len(table.rows)
    tails: list[int] = []
    labels: list[int] = []
    entering: list[list[int]] = [[] for _ in range(states)]
    for state, row in enumerate(table.rows):
        for label, target in row.items():
            entering[target].append(len(tails))
            tails.append(state)
            labels.append(label)
    blocks = _Partition(states)
    blocks.mark_all(state for state, final in enumerate(table.accepting) if final)
    blocks.split()
    cords = _Partition.grouped(labels)
    next_block, next_cord = 1, 0
    while next_cord < len(cords.first):
        blocks.mark_all([tails[t] for t in cords.members(next_cord)])
        blocks.split()
        next_cord += 1
        while next_block < len(blocks.first):
            cords.mark_all([t for state in blocks.members(next_block) for t in entering[state]])
            cords.split()
            next_block += 1
    return blocks.block


class _Partition:
    """A refinable partition of 0..n-1; marked elements stand first in their block."""

    def __init__(self, count: int) -> None:
        self.elements = list(range(count))
        self.place = list(range(count))
        self.block = [0] * count
        self.first = [0]
        self.past = [count]
        self.marked = [0]
        self.touched: list[int] = []

    @classmethod
    def grouped(cls, labels: list[int]) -> _Partition:
        """Return the partition into elements of equal labels."""
        partition = cls(len(labels))
        partition.elements.sort(key=labels.__getitem__)
        partition.first = []
        previous: int | None = None
        for place, element in enumerate(partition.elements):
            if labels[element] != previous:
                previous = labels[element]
                partition.first.append(place)
            partition.place[element] = place
            partition.block[element] = len(partition.first) - 1
        partition.past = [*partition.first[1:], len(labels)] if labels else []
        partition.marked = [0] * len(partition.first)
        return partition

    def members(self, block: int) -> list[int]:
        return self.elements[self.first[block] : self.past[block]]

    def mark_all(self, elements: Iterable[int]) -> None:
        block_of, place_of, order = self.block, self.place, self.elements
        for element in elements:
            block = block_of[element]
            place = place_of[element]
            boundary = self.first[block] + self.marked[block]
            if place >= boundary:
                if self.marked[block] == 0:
                    self.touched.append(block)
                self.marked[block] += 1
                other = order[boundary]
                order[boundary], order[place] = element, other
                place_of[element], place_of[other] = boundary, place

    def split(self) -> None:
        """Make a block of the marked or the unmarked part of every touched block, the smaller."""
        for block in self.touched:
            first, past = self.first[block], self.past[block]
            middle = first + self.marked[block]
            self.marked[block] = 0
            if middle == past:
                continue
            if middle - first <= past - middle:
                new_first, new_past = first, middle
                self.first[block] = middle
            else:
                new_first, new_past = middle, past
                self.past[block] = middle
            number = len(self.first)
            self.first.append(new_first)
            self.past.append(new_past)
            self.marked.append(0)
            for element in self.elements[new_first:new_past]:
                self.block[element] = number
        self.touched.clear()
