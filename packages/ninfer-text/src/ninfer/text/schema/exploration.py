"""Deterministic machines written as steps between values, made into automata."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Protocol, TypeVar

from ninfer.text.automata.dfa import Dfa
from ninfer.text.automata.minimal import minimal
from ninfer.text.automata.table import Table

State = TypeVar("State", bound=Hashable)


class Machine(Protocol[State]):
    """A deterministic machine over single characters."""

    @property
    def start(self) -> State:
        """Return the first state."""
        ...

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Yield the characters that a state reads, each once, and where they lead."""
        ...

    def accepts(self, state: State) -> bool:
        """Return whether a text may end in a state."""
        ...


def explored(machine: Machine[State]) -> Dfa:
    """Return the minimal automaton of a machine with finitely many states."""
    numbers = {machine.start: 0}
    order = [machine.start]
    letters: dict[str, int] = {}
    rows: list[dict[int, int]] = []
    for state in order:
        row: dict[int, int] = {}
        for character, target in machine.steps(state):
            if target not in numbers:
                numbers[target] = len(order)
                order.append(target)
            row[letters.setdefault(character, len(letters))] = numbers[target]
        rows.append(row)
    accepting = bytearray(machine.accepts(state) for state in order)
    return minimal(Table(rows, accepting, [[(ord(c), ord(c))] for c in letters]))
