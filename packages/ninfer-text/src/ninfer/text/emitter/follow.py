"""What can come after a production: the lookahead that keeps the core's masks cheap.

Without it the core tries every token that begins inside a production and ends outside of it, at
each mask. With it, tokens whose next character cannot follow are gone when a state is first seen.
The annotation never changes the language: what may follow is a superset of what does.

Where a production is called once, with something behind it, the core finds the lookahead itself,
and believes one that it is given instead: a token that ends inside of it is not looked at again.
Since ours says what may follow, not what does, such a production gets none.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
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

OPAQUE = -1
"""All bits: what a token terminal may begin with."""
_NO_CALL = -1


@dataclass(frozen=True, slots=True, eq=False)
class Following:
    """The characters that may come next; None where that is not known. Equal only to itself."""

    characters: CharacterSet | None


UNKNOWN = Following(None)


class Site(NamedTuple):
    """One call: where it stands, and what the rest of its sequence says of what follows.

    ``is_empty`` tells that the rest may be empty; ``is_inner`` that a symbol is written behind the
    call, and that the call is not counted.
    """

    caller: int
    way: int
    place: int
    after: int
    is_empty: bool
    is_inner: bool

    @property
    def is_certain(self) -> bool:
        """Return whether the core finds what follows, and that is never left to the caller."""
        return self.is_inner and not self.is_empty


class _Step(NamedTuple):
    """A symbol in numbers: what it calls, else what begins it (all bits for a token terminal).

    ``nullable`` and ``repeated`` add to what a called production says of itself.
    """

    called: int
    begins: int
    nullable: bool
    repeated: bool


class FollowAnalysis:
    """FOLLOW of every production: the least fixed point over FIRST.

    Productions are numbered in the order of ``productions.bodies``; sets of characters are bit
    sets. Only the end follows what nothing calls.
    """

    def __init__(self, productions: Productions, watched: Collection[int]) -> None:
        """Analyse; keep the calls of the ``watched`` productions in ``sites``."""
        bodies, machines = productions.bodies, productions.machines
        numbers = {name: number for number, name in enumerate(bodies)}
        # Most symbols are calls: they are told apart by their names, which are cheap to look up.
        calls = {name: _Step(number, 0, False, False) for name, number in numbers.items()}
        others = dict.fromkeys(
            s for body in bodies.values() for way in body for s in way if type(s) is not Call
        )
        sets = {symbol: _first_set(symbol) for symbol in others}
        known = [members for members in sets.values() if members is not None]
        self._intervals = Intervals([*known, *(m.first for m in machines.values())])
        steps = {s: self._step(s, members, numbers) for s, members in sets.items()}
        self._bodies = [
            [[calls[s.name] if type(s) is Call else steps[s] for s in way] for way in body]
            for body in bodies.values()
        ]
        self._firsts = [0] * len(bodies)
        self._nullable = [False] * len(bodies)
        for name, machine in machines.items():
            self._firsts[numbers[name]] = self._intervals.mask(machine.first)
            self._nullable[numbers[name]] = machine.nullable
        self._order = self._callees_first()
        self._find_firsts()
        self.sites: dict[int, list[Site]] = {number: [] for number in watched}
        self._calls = [0] * len(bodies)
        self._is_inner = [False] * len(bodies)
        self._made: dict[int, Following] = {}
        self._follow = self._find_follow()

    def following(self) -> list[Following]:
        """Return what follows every production; UNKNOWN where the core finds it better."""
        facts = zip(self._calls, self._is_inner, self._follow, strict=True)
        return [
            UNKNOWN if calls == 1 and inner else self._following(mask)
            for calls, inner, mask in facts
        ]

    def following_at(self, sites: Sequence[Site]) -> Following:
        """Return what follows a production with these calls and no others."""
        if len(sites) == 1 and sites[0].is_inner:
            return UNKNOWN
        mask = 0
        for site in sites:
            mask |= self.behind(site)
        return self._following(mask)

    def behind(self, site: Site) -> int:
        """Return what follows one call as a bit set."""
        return site.after | (self._follow[site.caller] if site.is_empty else 0)

    def _following(self, mask: int) -> Following:
        found = self._made.get(mask)
        if found is None:
            found = self._made[mask] = Following(self._characters(mask))
        return found

    def _characters(self, mask: int) -> CharacterSet | None:
        if mask == OPAQUE:
            return None
        ranges = self._intervals.ranges
        return CharacterSet.of(r for place, r in enumerate(ranges) if mask >> place & 1)

    def _find_firsts(self) -> None:
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

    def _find_follow(self) -> list[int]:
        """Find what follows every production; few passes do, since callers come first."""
        following = [0] * len(self._bodies)
        endings: list[set[int]] = [set() for _ in self._bodies]
        for number, body in enumerate(self._bodies):
            for index, way in enumerate(body):
                self._read_backwards(number, index, way, following, endings[number])
        changed = True
        while changed:
            changed = False
            for number in reversed(self._order):
                after = following[number]
                for ending in endings[number]:
                    if after & ~following[ending]:
                        following[ending] |= after
                        changed = True
        return following

    def _step(self, symbol: Symbol, first: CharacterSet | None, numbers: dict[str, int]) -> _Step:
        inner = symbol.symbol if isinstance(symbol, Counted) else symbol
        called = numbers[inner.name] if isinstance(inner, Call) else _NO_CALL
        begins = OPAQUE if first is None else self._intervals.mask(first)
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

    def _read_backwards(
        self, caller: int, index: int, way: list[_Step], following: list[int], endings: set[int]
    ) -> None:
        """Note what follows every call of a sequence, and the calls that may be its end."""
        after, is_empty = 0, True
        for place in range(len(way) - 1, -1, -1):
            called, begins, nullable, repeated = way[place]
            if called != _NO_CALL:
                begins = self._firsts[called]
                nullable = nullable or self._nullable[called]
                if repeated:
                    after |= begins
                following[called] |= after
                if is_empty:
                    endings.add(called)
                is_inner = place + 1 < len(way) and not repeated
                self._calls[called] += 1
                self._is_inner[called] = is_inner
                if called in self.sites:
                    site = Site(caller, index, place, after, is_empty, is_inner)
                    self.sites[called].append(site)
            after = begins | after if nullable else begins
            is_empty = is_empty and nullable


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


@lru_cache(maxsize=4_096)
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
