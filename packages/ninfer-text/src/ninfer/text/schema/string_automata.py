"""The automata behind string terms, built once per reduction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ninfer.contract.errors import UnsupportedSchema
from ninfer.contract.location import JsonPointer
from ninfer.text.automata.dfa import NOTHING, Dfa
from ninfer.text.automata.limits import AutomatonLimit
from ninfer.text.automata.operations import (
    ANY_TEXT,
    bounded,
    complement,
    difference,
    intersection,
    union,
)
from ninfer.text.automata.words import word_automaton
from ninfer.text.regex import pattern_automaton
from ninfer.text.schema.formats import format_automaton
from ninfer.text.schema.strings import Atom, AtomKind, StringSet, Term


@dataclass(slots=True)
class StringAutomata:
    """A memory of automata; implements ``StringOracle``.

    ``places`` are where patterns and formats stand first, by their text.
    """

    places: Mapping[str, JsonPointer] = field(default_factory=dict)
    _atoms: dict[Atom, Dfa] = field(default_factory=dict)
    _terms: dict[Term, Dfa] = field(default_factory=dict)

    def matches(self, atom: Atom, text: str) -> bool:
        """Return whether an atom's affirmed language has a string.

        Raises: UnsupportedSchema — a limit.
        """
        return self.term(Term(atoms=frozenset({atom._replace(positive=True)}))).accepts(text)

    def is_empty(self, term: Term) -> bool:
        """Return whether a term has no string.

        Raises: UnsupportedSchema — a limit.
        """
        return self.term(term).is_empty

    def term(self, term: Term) -> Dfa:
        """Return the automaton of a term.

        Raises: UnsupportedSchema — a limit.
        """
        found = self._terms.get(term)
        if found is None:
            try:
                found = self._terms[term] = self._build(term)
            except AutomatonLimit as limit:
                raise self._refusal(limit, term.atoms) from None
        return found

    def strings(self, strings: StringSet) -> Dfa:
        """Return the automaton of a whole set.

        Raises: UnsupportedSchema — a limit.
        """
        found = word_automaton(sorted(strings.finite)) if strings.finite else NOTHING
        for term in strings.terms:
            machine = self.term(term)
            try:
                found = machine if found is NOTHING else union(found, machine)
            except AutomatonLimit as limit:
                raise self._refusal(limit, term.atoms) from None
        return found

    def without(self, machine: Dfa, excluded: frozenset[str]) -> Dfa:
        """Return an automaton's words without some.

        Raises: UnsupportedSchema — a limit.
        """
        return difference(machine, word_automaton(sorted(excluded))) if excluded else machine

    def _build(self, term: Term) -> Dfa:
        ordered = sorted(term.atoms, key=lambda a: (not a.positive, a.kind.value, a.text))
        machine: Dfa | None = None
        for atom in ordered:
            affirmed = self._affirmed(atom.kind, atom.text)
            if atom.positive:
                machine = affirmed if machine is None else intersection(machine, affirmed)
            else:
                machine = complement(affirmed) if machine is None else difference(machine, affirmed)
        machine = ANY_TEXT if machine is None else machine
        if term.least or term.most is not None:
            machine = bounded(machine, term.least, term.most)
        return self.without(machine, term.excluded)

    def _refusal(self, limit: AutomatonLimit, atoms: frozenset[Atom]) -> UnsupportedSchema:
        atom = min(atoms, key=lambda a: (a.kind.value, a.text), default=None)
        return UnsupportedSchema(
            f"needs {limit}",
            keyword="pattern" if atom is None else atom.kind.value,
            location=JsonPointer() if atom is None else self.places.get(atom.text, JsonPointer()),
        )

    def _affirmed(self, kind: AtomKind, text: str) -> Dfa:
        atom = Atom(kind, text)
        found = self._atoms.get(atom)
        if found is None:
            build = pattern_automaton if kind is AtomKind.PATTERN else format_automaton
            found = self._atoms[atom] = build(text)
        return found
