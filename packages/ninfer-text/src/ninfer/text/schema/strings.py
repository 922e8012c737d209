"""Sets of strings in closed form: a finite part and terms of length, atoms and exclusions.

An atom is a pattern or a format, affirmed or denied. Plain lengths and finite sets never need an
automaton; what does need one asks the ``StringOracle``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol


class AtomKind(Enum):
    """Where a regular language of strings comes from."""

    PATTERN = "pattern"
    FORMAT = "format"


class Atom(NamedTuple):
    """A named regular language, or its complement."""

    kind: AtomKind
    text: str
    positive: bool = True


class Term(NamedTuple):
    """Strings of a length range that satisfy every atom, except the excluded ones."""

    least: int = 0
    most: int | None = None
    atoms: frozenset[Atom] = frozenset()
    excluded: frozenset[str] = frozenset()

    @property
    def is_plain(self) -> bool:
        """Return whether the lengths say everything."""
        return not self.atoms and not self.excluded


class StringOracle(Protocol):
    """What only automata can answer."""

    def matches(self, atom: Atom, text: str) -> bool:
        """Return whether an atom's language has a string."""
        ...

    def is_empty(self, term: Term) -> bool:
        """Return whether a term has no string."""
        ...


@dataclass(frozen=True, slots=True)
class StringSet:
    """A union of listed strings and of terms."""

    finite: tuple[str, ...] = ()
    terms: tuple[Term, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.finite or self.terms)

    def __or__(self, other: StringSet) -> StringSet:
        return union((self, other))


ANY_TERM = Term()
NO_STRING = StringSet()
ANY_STRING = StringSet((), (ANY_TERM,))


def union(sets: Iterable[StringSet]) -> StringSet:
    """Return the strings of any of the sets."""
    finite: dict[str, None] = {}
    terms: dict[Term, None] = {}
    for strings in sets:
        finite.update(dict.fromkeys(strings.finite))
        terms.update(dict.fromkeys(strings.terms))
    return ANY_STRING if ANY_TERM in terms else StringSet(tuple(finite), tuple(terms))


def listed(texts: Iterable[str]) -> StringSet:
    """Return the set of the given strings."""
    return StringSet(tuple(dict.fromkeys(texts)))


def of_term(term: Term) -> StringSet:
    """Return the set of one term."""
    return StringSet((), (term,))


def holds(term: Term, text: str, oracle: StringOracle) -> bool:
    """Return whether a term has a string; lengths count characters."""
    if not term.least <= len(text) <= (len(text) if term.most is None else term.most):
        return False
    if text in term.excluded:
        return False
    return all(oracle.matches(atom, text) == atom.positive for atom in term.atoms)


def contains(strings: StringSet, text: str, oracle: StringOracle) -> bool:
    """Return whether a set has a string."""
    return text in strings.finite or any(holds(term, text, oracle) for term in strings.terms)


def meet(a: StringSet, b: StringSet, oracle: StringOracle) -> StringSet:
    """Return the intersection; provably empty terms disappear."""
    if a == ANY_STRING or a == b:
        return b
    if b == ANY_STRING:
        return a
    others = frozenset(b.finite)
    finite = [
        text
        for text in a.finite
        if text in others or any(holds(term, text, oracle) for term in b.terms)
    ]
    finite += [text for text in b.finite if any(holds(term, text, oracle) for term in a.terms)]
    terms = (_meet_terms(s, t) for s in a.terms for t in b.terms)
    kept = dict.fromkeys(term for term in terms if not is_empty(term, oracle))
    return StringSet(tuple(dict.fromkeys(finite)), tuple(kept))


def complement(strings: StringSet, oracle: StringOracle) -> StringSet:
    """Return every other string."""
    rest = ANY_STRING
    if strings.finite:
        rest = of_term(Term(excluded=frozenset(strings.finite)))
    for term in strings.terms:
        rest = meet(rest, _outside(term), oracle)
    return rest


def is_empty(term: Term, oracle: StringOracle) -> bool:
    """Return whether a term has no string."""
    if term.most is not None and term.least > term.most:
        return True
    if term.atoms:
        return oracle.is_empty(term)
    return term.most == 0 and "" in term.excluded


def _meet_terms(a: Term, b: Term) -> Term:
    most = a.most if b.most is None else b.most if a.most is None else min(a.most, b.most)
    return Term(max(a.least, b.least), most, a.atoms | b.atoms, a.excluded | b.excluded)


def _outside(term: Term) -> StringSet:
    parts = [
        Term(atoms=frozenset({atom._replace(positive=not atom.positive)}))
        for atom in sorted(term.atoms, key=lambda a: (a.kind.value, a.text, a.positive))
    ]
    if term.least:
        parts.append(Term(0, term.least - 1))
    if term.most is not None:
        parts.append(Term(term.most + 1, None))
    return StringSet(tuple(sorted(term.excluded)), tuple(parts))
