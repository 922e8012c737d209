"""Flat productions: what the core itself would make of nested groups, made by us once.

A production is a list of alternatives, an alternative a sequence of symbols. Equal productions are
one production, so equal sublanguages are spelled, compiled and cached once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from ninfer.text.automata.characters import CharacterSet
from ninfer.text.automata.dfa import Dfa
from ninfer.text.emitter.spelling import spell_class, spell_negated, spell_text, spell_tokens


@dataclass(frozen=True, slots=True)
class Text:
    """A nonempty text."""

    text: str

    def __str__(self) -> str:
        return spell_text(self.text)


@dataclass(frozen=True, slots=True)
class OneOf:
    """One character of a set, or with ``starred`` any number of them.

    ``negated`` only changes the spelling.
    """

    members: CharacterSet
    starred: bool = False
    negated: bool = False

    def __str__(self) -> str:
        spelled = spell_negated(self.members) if self.negated else spell_class(self.members)
        return spelled + ("*" if self.starred else "")


@dataclass(frozen=True, slots=True)
class Expression:
    """A regular expression that the core keeps as one machine; ``first`` begins its words."""

    pattern: str
    first: CharacterSet
    nullable: bool

    def __str__(self) -> str:
        return f'Regex("{self.pattern}")'


@dataclass(frozen=True, slots=True)
class Tokens:
    """A token terminal."""

    ids: tuple[int, ...]
    excluded: bool

    def __str__(self) -> str:
        return spell_tokens(self.ids, excluded=self.excluded)


@dataclass(frozen=True, slots=True)
class Call:
    """A reference to another production."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Counted:
    """A symbol between ``low`` and ``high`` times, counted by the core."""

    symbol: OneOf | Call
    low: int
    high: int

    def __str__(self) -> str:
        return f"{self.symbol}{{{self.low},{self.high}}}"


Symbol = Text | OneOf | Expression | Tokens | Call | Counted
Alternative = tuple[Symbol, ...]
Body = tuple[Alternative, ...]


@dataclass(frozen=True, slots=True)
class Machine:
    """A production whose states are productions too; ``first`` begins its words."""

    dfa: Dfa
    first: CharacterSet
    nullable: bool


NOTHING: Body = ((OneOf(CharacterSet()),),)


def one_of(members: CharacterSet) -> Symbol:
    """Return the symbol of one character of a set; a single character is a text."""
    if len(members) == 1:
        return Text(chr(members.ranges[0][0]))
    return OneOf(members)


@dataclass(slots=True)
class Productions:
    """The productions of one grammar in order of their making."""

    bodies: dict[str, Body] = field(default_factory=dict)
    machines: dict[str, Machine] = field(default_factory=dict)
    _names: dict[Body, str] = field(default_factory=dict)
    _parts: dict[str, int] = field(default_factory=dict)

    def intern(self, body: Body, owner: str) -> str:
        """Return the name of a body; a new one is called after the production it is written for."""
        if body not in self._names:
            self._names[body] = self.part(owner)
            self.bodies[self._names[body]] = body
        return self._names[body]

    def part(self, owner: str) -> str:
        """Return a new name for a part of a production, whose body will be set with ``define``."""
        owner = owner.partition("-")[0]
        self._parts[owner] = self._parts.get(owner, 0) + 1
        name = f"{owner}-{self._parts[owner]}"
        self.bodies[name] = ()
        return name

    def reserve(self, stem: str) -> str:
        """Return a new name for a rule, whose body will be set with ``define``."""
        stem = _UNFIT.sub("_", stem)
        name = stem if _FIT.fullmatch(stem) else f"r_{stem}"
        number = len(self.bodies)
        while name in self.bodies:
            name = f"r_{stem}_{number}"
            number += 1
        self.bodies[name] = ()
        return name

    def add_machine(self, machine: Machine) -> str:
        """Return the name of a new machine; short, since its states repeat it."""
        name = f"q--{len(self.machines)}"
        self.bodies[name] = ()
        self.machines[name] = machine
        return name

    def define(self, name: str, body: Body) -> None:
        """Give a reserved name its body."""
        self.bodies[name] = body
        self._names.setdefault(body, name)


_UNFIT = re.compile(r"[^A-Za-z0-9_]")
_FIT = re.compile(
    r"(?!(?:Token|ExcludeToken|TagDispatch|TokenTagDispatch|Regex|Substring)$)[A-Za-z_]\w*"
)


def spell_bodies(bodies: Mapping[str, Body]) -> Iterator[tuple[str, str]]:
    """Yield every name with its right-hand side."""
    for name, body in bodies.items():
        ways = [" ".join(map(_spelled, symbols)) if symbols else '""' for symbols in body]
        yield name, " | ".join(ways)


def _spelled(symbol: Symbol) -> str:
    return symbol.name if type(symbol) is Call else _remembered(symbol)


@lru_cache(maxsize=4_096)
def _remembered(symbol: Symbol) -> str:
    """Return the text of a symbol; grammars have most of theirs in common."""
    return str(symbol)
