"""What can come after a production: the lookahead that keeps the core's masks cheap.

Without it the core tries every token that begins inside a production and ends outside of it, at
each mask. With it, tokens whose next character cannot follow are gone when a state is first seen.
The annotation never changes the language: what may follow is a superset of what does.
"""

from __future__ import annotations

from typing import NamedTuple

from ninfer.text.automata.alphabet import Intervals
from ninfer.text.automata.characters import CharacterSet
from ninfer.text.emitter.productions import (
    Call,
    Counted,
    Expression,
    OneOf,
    Productions,
    Symbol,
    Text,
)

_OPAQUE = -1
_NO_CALL = -1


def follow_sets(productions: Productions) -> dict[str, CharacterSet | None]:
    """Return the characters that may follow every production; None where that is not known.

    Math: the least fixed point of FOLLOW over FIRST; only the end follows what nothing calls.
    """
    analysis = _Analysis(productions)
    analysis.find_firsts()
    masks = analysis.follow()
    members = {mask: analysis.characters(mask) for mask in set(masks)}
    return {name: members[mask] for name, mask in zip(productions.bodies, masks, strict=True)}


class _Step(NamedTuple):
    """A symbol in numbers: what it calls, else what begins it (all bits for a token terminal).

    ``nullable`` and ``repeated`` add to what a called production says of itself.
    """

    called: int
    begins: int
    nullable: bool
    repeated: bool


class _Analysis:
    """Productions by number, in the order of ``productions.bodies``; sets of characters as bits."""

    def __init__(self, productions: Productions) -> None:
        bodies = productions.bodies
        numbers = {name: number for number, name in enumerate(bodies)}
        symbols = dict.fromkeys(s for body in bodies.values() for way in body for s in way)
        sets = {symbol: _first_set(symbol) for symbol in symbols}
        known = [members for members in sets.values() if members is not None]
        machines = productions.machines
        self._intervals = Intervals([*known, *(m.first for m in machines.values())])
        steps = {s: self._step(s, members, numbers) for s, members in sets.items()}
        self._bodies = [
            [[steps[symbol] for symbol in way] for way in body] for body in bodies.values()
        ]
        self._firsts = [0] * len(bodies)
        self._nullable = [False] * len(bodies)
        for name, machine in machines.items():
            self._firsts[numbers[name]] = self._intervals.mask(machine.first)
            self._nullable[numbers[name]] = machine.nullable
        self._order = self._callees_first()

    def characters(self, mask: int) -> CharacterSet | None:
        """Return the set behind a bit set."""
        if mask == _OPAQUE:
            return None
        ranges = self._intervals.ranges
        return CharacterSet.of(r for place, r in enumerate(ranges) if mask >> place & 1)

    def find_firsts(self) -> None:
        """Find what begins every production; few passes do, since callees come first."""
        firsts, empties = self._firsts, self._nullable
        changed = True
        while changed:
            changed = False
            for number in self._order:
                characters, empty = firsts[number], empties[number]
                for way in self._bodies[number]:
                    for called, begins, nullable, _ in way:
                        if called != _NO_CALL:
                            begins = firsts[called]
                            nullable = nullable or empties[called]
                        characters |= begins
                        if not nullable:
                            break
                    else:
                        empty = True
                if characters != firsts[number] or empty != empties[number]:
                    firsts[number], empties[number] = characters, empty
                    changed = True

    def follow(self) -> list[int]:
        """Return what follows every production; few passes do, since callers come first."""
        following = [0] * len(self._bodies)
        endings: list[set[int]] = [set() for _ in self._bodies]
        for number, body in enumerate(self._bodies):
            for way in body:
                self._read_backwards(way, following, endings[number])
        changed = True
        while changed:
            changed = False
            for number in reversed(self._order):
                after = following[number]
                for ending in endings[number]:
                    if after | following[ending] != following[ending]:
                        following[ending] |= after
                        changed = True
        return following

    def _step(self, symbol: Symbol, first: CharacterSet | None, numbers: dict[str, int]) -> _Step:
        inner = symbol.symbol if isinstance(symbol, Counted) else symbol
        called = numbers[inner.name] if isinstance(inner, Call) else _NO_CALL
        begins = _OPAQUE if first is None else self._intervals.mask(first)
        return _Step(called, begins, _is_nullable(symbol), isinstance(symbol, Counted))

    def _callees_first(self) -> list[int]:
        calls = [{s.called for way in body for s in way} - {_NO_CALL} for body in self._bodies]
        order: list[int] = []
        entered = bytearray(len(calls))
        pending = [~number for number in reversed(range(len(calls)))]
        while pending:
            number = pending.pop()
            if number >= 0:
                order.append(number)
            elif not entered[~number]:
                entered[~number] = True
                pending.append(~number)
                pending.extend(~called for called in calls[~number] if not entered[called])
        return order

    def _read_backwards(self, way: list[_Step], following: list[int], endings: set[int]) -> None:
        """Note what follows every call of a sequence, and the calls that may be its end."""
        after, at_end = 0, True
        for called, begins, nullable, repeated in reversed(way):
            if called != _NO_CALL:
                begins = self._firsts[called]
                nullable = nullable or self._nullable[called]
                following[called] |= after | begins if repeated else after
                if at_end:
                    endings.add(called)
            after = begins | after if nullable else begins
            at_end = at_end and nullable


def _is_nullable(symbol: Symbol) -> bool:
    match symbol:
        case OneOf(_, starred):
            return starred
        case Expression():
            return symbol.nullable
        case Counted(_, low):
            return low == 0
        case _:
            return False


def _first_set(symbol: Symbol) -> CharacterSet | None:
    match symbol:
        case Text(text):
            return CharacterSet.single(ord(text[0]))
        case OneOf(members):
            return members
        case Expression(_, first):
            return first
        case Counted(repeated):
            return _first_set(repeated)
        case _:
            return None
