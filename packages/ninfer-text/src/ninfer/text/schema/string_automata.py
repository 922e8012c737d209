"""The automata behind string terms, built once per reduction."""

from __future__ import annotations

from dataclasses import dataclass, field

from ninfer.text.automata.dfa import NOTHING, Dfa
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
    """A memory of automata; implements ``StringOracle``."""

    _atoms: dict[Atom, Dfa] = field(default_factory=dict)
    _terms: dict[Term, Dfa] = field(default_factory=dict)

    def matches(self, atom: Atom, text: str) -> bool:
        """Return whether an atom's affirmed language has a string.

        Raises: AutomatonLimit.
        """
        return self._affirmed(atom.kind, atom.text).accepts(text)

    def is_empty(self, term: Term) -> bool:
        """Return whether a term has no string.

        Raises: AutomatonLimit.
        """
        return self.term(term).is_empty

    def term(self, term: Term) -> Dfa:
        """Return the automaton of a term.

        Raises: AutomatonLimit.
        """
        found = self._terms.get(term)
        if found is None:
            found = self._terms[term] = self._build(term)
        return found

    def strings(self, strings: StringSet) -> Dfa:
        """Return the automaton of a whole set.

        Raises: AutomatonLimit.
        """
        found = word_automaton(sorted(strings.finite)) if strings.finite else NOTHING
        for term in strings.terms:
            machine = self.term(term)
            found = machine if found is NOTHING else union(found, machine)
        return found

    def without(self, machine: Dfa, excluded: frozenset[str]) -> Dfa:
        """Return an automaton's words without some.

        Raises: AutomatonLimit.
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

    def _affirmed(self, kind: AtomKind, text: str) -> Dfa:
        atom = Atom(kind, text)
        found = self._atoms.get(atom)
        if found is None:
            build = pattern_automaton if kind is AtomKind.PATTERN else format_automaton
            found = self._atoms[atom] = build(text)
        return found
