"""Boolean operations and length bounds on automata; every result is minimal and canonical."""

from __future__ import annotations

from collections.abc import Callable

from ninfer.text.automata.characters import ANY_CHARACTER
from ninfer.text.automata.dfa import NOTHING, Dfa
from ninfer.text.automata.limits import CHARACTER_LIMIT, STATE_LIMIT, AutomatonLimit
from ninfer.text.automata.minimal import minimal
from ninfer.text.automata.table import Table, tables

ANY_TEXT = Dfa((tuple((low, high, 0) for low, high in ANY_CHARACTER.ranges),), b"\1")
"""Every text."""

_DEAD = -1


def intersection(first: Dfa, second: Dfa, limit: int = STATE_LIMIT) -> Dfa:
    """Return the words of both.

    Raises: AutomatonLimit — the product has more than ``limit`` states.
    """
    return _product(first, second, lambda a, b: a and b, limit)


def union(first: Dfa, second: Dfa, limit: int = STATE_LIMIT) -> Dfa:
    """Return the words of either.

    Raises: AutomatonLimit — the product has more than ``limit`` states.
    """
    return _product(first, second, lambda a, b: a or b, limit)


def difference(first: Dfa, second: Dfa, limit: int = STATE_LIMIT) -> Dfa:
    """Return the words of the first that are not words of the second.

    Raises: AutomatonLimit — the product has more than ``limit`` states.
    """
    return _product(first, second, lambda a, b: a and not b, limit)


def complement(dfa: Dfa) -> Dfa:
    """Return the texts that are not words."""
    return difference(ANY_TEXT, dfa)


def bounded(dfa: Dfa, low: int, high: int | None, limit: int = STATE_LIMIT) -> Dfa:
    """Return the words of ``low`` to ``high`` characters; None has no upper bound.

    Raises: AutomatonLimit — a bound is over the character limit, or the product has more than
            ``limit`` states.
    """
    if max(low, high or 0) > CHARACTER_LIMIT:
        raise AutomatonLimit.characters()
    if high is not None and low > high:
        return NOTHING
    return intersection(dfa, length_automaton(low, high), limit)


def length_automaton(low: int, high: int | None) -> Dfa:
    """Return the texts of ``low`` to ``high`` characters."""
    last = low if high is None else high
    targets = [*range(1, last + 1), *([last] if high is None else [])]
    edges = [tuple((a, b, target) for a, b in ANY_CHARACTER.ranges) for target in targets]
    edges += [()] * (last + 1 - len(edges))
    return Dfa(tuple(edges), bytes(state >= low for state in range(last + 1)))


def _product(first: Dfa, second: Dfa, accepts: Callable[[bool, bool], bool], limit: int) -> Dfa:
    """Return the automaton of pairs; a machine that refused stays refused."""
    left, right = tables(first, second)
    left_only, right_only = accepts(True, False), accepts(False, True)
    pairs = [(0, 0)]
    numbers = {(0, 0): 0}
    rows: list[dict[int, int]] = []
    for a, b in pairs:
        row: dict[int, int] = {}
        left_row = left.rows[a] if a != _DEAD else {}
        right_row = right.rows[b] if b != _DEAD else {}
        for character in _characters(left_row, right_row, left_only, right_only):
            pair = (left_row.get(character, _DEAD), right_row.get(character, _DEAD))
            number = numbers.get(pair)
            if number is None:
                if len(pairs) >= limit:
                    raise AutomatonLimit.states(limit)
                number = numbers[pair] = len(pairs)
                pairs.append(pair)
            row[character] = number
        rows.append(row)
    accepting = bytearray(
        accepts(a != _DEAD and bool(left.accepting[a]), b != _DEAD and bool(right.accepting[b]))
        for a, b in pairs
    )
    return minimal(Table(rows, accepting, left.ranges))


def _characters(
    left: dict[int, int], right: dict[int, int], left_only: bool, right_only: bool
) -> list[int]:
    """Return the classes that lead somewhere, given which side may go on alone."""
    if left_only and right_only:
        return [*left, *(c for c in right if c not in left)]
    if left_only:
        return list(left)
    return [c for c in left if c in right]
