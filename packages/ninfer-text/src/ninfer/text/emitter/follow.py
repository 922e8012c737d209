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
    Alternative,
    Body,
    Call,
    Counted,
    Expression,
    OneOf,
    Productions,
    Symbol,
    Text,
)

_OPAQUE = -1


class _Beginning(NamedTuple):
    """First characters as a bit set, all bits after a token terminal; whether nothing may come."""

    characters: int
    nullable: bool


def follow_sets(productions: Productions) -> dict[str, CharacterSet | None]:
    """Return the characters that may follow every production; None where that is not known.

    Math: the least fixed point of FOLLOW over FIRST; only the end follows what nothing calls.
    """
    analysis = _Analysis(productions)
    masks = analysis.follow()
    members = {mask: analysis.characters(mask) for mask in set(masks.values())}
    return {name: members[mask] for name, mask in masks.items()}


class _Analysis:
    def __init__(self, productions: Productions) -> None:
        self._bodies = bodies = productions.bodies
        machines = productions.machines
        symbols = (s for body in bodies.values() for alternative in body for s in alternative)
        sets = {s: _first_set(s) for s in dict.fromkeys(symbols)}
        first = [members for members in sets.values() if members is not None]
        self._intervals = Intervals([*first, *(m.first for m in machines.values())])
        self._masks = {
            symbol: _OPAQUE if members is None else self._intervals.mask(members)
            for symbol, members in sets.items()
        }
        self._firsts = dict.fromkeys(bodies, _Beginning(0, nullable=False))
        self._machines = {
            name: _Beginning(self._intervals.mask(machine.first), machine.nullable)
            for name, machine in machines.items()
        }
        self._find_firsts()

    def characters(self, mask: int) -> CharacterSet | None:
        """Return the set behind a bit set."""
        if mask == _OPAQUE:
            return None
        ranges = self._intervals.ranges
        return CharacterSet.of(r for place, r in enumerate(ranges) if mask >> place & 1)

    def follow(self) -> dict[str, int]:
        following = dict.fromkeys(self._bodies, 0)
        endings: dict[str, set[str]] = {name: set() for name in self._bodies}
        for name, body in self._bodies.items():
            for alternative in body:
                self._read_backwards(name, alternative, following, endings)
        pending = dict.fromkeys(self._bodies)
        while pending:
            name = next(iter(pending))
            del pending[name]
            for ending in endings[name]:
                merged = following[ending] | following[name]
                if merged != following[ending]:
                    following[ending] = merged
                    pending[ending] = None
        return following

    def _read_backwards(
        self,
        name: str,
        alternative: Alternative,
        following: dict[str, int],
        endings: dict[str, set[str]],
    ) -> None:
        after, at_end = 0, True
        for symbol in reversed(alternative):
            called = _called(symbol)
            begins = self._begins(symbol)
            if called is not None:
                repeated = begins.characters if isinstance(symbol, Counted) else 0
                following[called] |= after | repeated
                if at_end:
                    endings[name].add(called)
            after = begins.characters | (after if begins.nullable else 0)
            at_end = at_end and begins.nullable

    def _find_firsts(self) -> None:
        users: dict[str, set[str]] = {name: set() for name in self._bodies}
        for name, body in self._bodies.items():
            for called in {_called(s) for alternative in body for s in alternative} - {None}:
                users[str(called)].add(name)
        pending = dict.fromkeys([*self._bodies][::-1])
        while pending:
            name = next(iter(pending))
            del pending[name]
            found = self._machines.get(name) or self._body_begins(self._bodies[name])
            if found != self._firsts[name]:
                self._firsts[name] = found
                pending.update(dict.fromkeys(users[name]))

    def _body_begins(self, body: Body) -> _Beginning:
        characters, nullable = 0, False
        for alternative in body:
            for symbol in alternative:
                begins = self._begins(symbol)
                characters |= begins.characters
                if not begins.nullable:
                    break
            else:
                nullable = True
        return _Beginning(characters, nullable)

    def _begins(self, symbol: Symbol) -> _Beginning:
        match symbol:
            case Call(name):
                return self._firsts[name]
            case Counted(Call(name), low):
                once = self._firsts[name]
                return _Beginning(once.characters, once.nullable or low == 0)
            case _:
                return _Beginning(self._masks[symbol], _is_nullable(symbol))


def _called(symbol: Symbol) -> str | None:
    if isinstance(symbol, Counted):
        return _called(symbol.symbol)
    return symbol.name if isinstance(symbol, Call) else None


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
