"""An automaton of values, each followed by the closing that ends it where it first stands.

One deterministic automaton: where a value could go on and the closing could begin at once, two
rules would make the core read every such place twice.
"""

from __future__ import annotations

from collections.abc import Iterator

from ninfer.qwen_frontend.stage_grammar import first_occurrence
from ninfer.text.automata.dfa import Dfa, Edge
from ninfer.text.automata.limits import STATE_LIMIT, AutomatonLimit
from ninfer.text.automata.operations import intersection

_Place = tuple[int, int]
"""A state of the values before what was read of the closing, and how much of it was read."""


def closed_values(values: Dfa, closing: str) -> Dfa:
    """Return the words that do not hold the closing, each followed by it.

    Math:   place (u, k): the text read is a value prefix that leads to u, then closing[:k]; a
            character that does not go on with the closing moves u over what cannot be part of it.
    Raises: AutomatonLimit — more than the stated number of states.
    """
    numbers: dict[_Place, int] = {(0, 0): 0}
    order: list[_Place] = [(0, 0)]
    rows: list[tuple[Edge, ...]] = []
    for place in order:
        row = []
        for low, high, target in _steps(values, closing, place):
            if target not in numbers:
                if len(order) >= STATE_LIMIT:
                    raise AutomatonLimit.states()
                numbers[target] = len(order)
                order.append(target)
            row.append((low, high, numbers[target]))
        rows.append(tuple(sorted(row)))
    accepting = bytes(k == len(closing) and bool(values.accepting[u]) for u, k in order)
    return intersection(Dfa(tuple(rows), accepting), first_occurrence(closing))


def _steps(values: Dfa, closing: str, place: _Place) -> Iterator[tuple[int, int, _Place]]:
    """Yield the characters of a place and where they lead."""
    state, read = place
    if read == len(closing):
        return
    yield ord(closing[read]), ord(closing[read]), (state, read + 1)
    special = {closing[read]}
    for character in set(closing) - special:
        text = closing[:read] + character
        border = next(n for n in range(read, -1, -1) if text.endswith(closing[:n]))
        if border:
            special.add(character)
            moved = values.run(text[:-border], state)
            if moved is not None:
                yield ord(character), ord(character), (moved, border)
    behind = values.run(closing[:read], state)
    if behind is not None:
        for low, high, target in values.edges[behind]:
            for first, last in _without(low, high, special):
                yield first, last, (target, 0)


def _without(low: int, high: int, special: set[str]) -> Iterator[tuple[int, int]]:
    """Yield the parts of a range between special characters."""
    for code in sorted(map(ord, special)):
        if low <= code <= high:
            if low < code:
                yield low, code - 1
            low = code + 1
    if low <= high:
        yield low, high
