"""The automata behind string terms, built once per reduction, with counted work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ninfer.contract.errors import UnsupportedSchema
from ninfer.contract.location import JsonPointer
from ninfer.text.automata.dfa import NOTHING, Dfa
from ninfer.text.automata.facts import longest_characters, shortest_characters
from ninfer.text.automata.limits import AutomatonLimit, Work
from ninfer.text.automata.operations import ANY_TEXT, complement, difference, intersection, union
from ninfer.text.automata.words import word_automaton
from ninfer.text.regex import pattern_automaton
from ninfer.text.schema.escaping import quoted
from ninfer.text.schema.formats import SHORT_CHARACTERS, SHORT_FORMATS, format_automaton
from ninfer.text.schema.lengths import has_word, with_length
from ninfer.text.schema.strings import Atom, AtomKind, StringSet, Term

EDGE_LIMIT = 131_072
"""Edges of one automaton that a length bound makes."""

WORK_LIMIT = 393_216
"""Pairs of states, times the edges of a state, that one reduction may combine."""

_STEPS_A_LONG_EDGE = 12
"""What an edge of a bounded or quoted automaton costs of the steps that one reduction has."""
_ESCAPE_EDGES = 40
"""What a state gets when the characters that it reads are escaped."""


@dataclass(slots=True)
class StringAutomata:
    """A memory of automata; implements ``StringOracle``.

    ``places`` are where patterns and formats stand first, by their text.
    """

    places: Mapping[str, JsonPointer] = field(default_factory=dict)
    work: int = 0
    _steps: Work = field(default_factory=Work)
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
        if not term.excluded and (term.least or term.most is not None):
            machine = self.term(Term(atoms=term.atoms))
            try:
                return not has_word(machine, term.least, term.most, self._steps)
            except AutomatonLimit as limit:
                raise self._refusal(limit, term.atoms) from None
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
                found = machine if found is NOTHING else self._combined(union, found, machine)
            except AutomatonLimit as limit:
                raise self._refusal(limit, term.atoms) from None
        return found

    def quoted(self, machine: Dfa) -> Dfa:
        """Return the JSON spellings of an automaton's words.

        Raises: AutomatonLimit — no steps are left.
        """
        edges = sum(len(out) + _ESCAPE_EDGES * (out[0][0] <= 0x5C) for out in machine.edges if out)
        self._steps.spend(_STEPS_A_LONG_EDGE * edges)
        return quoted(machine)

    def spelled(self, term: Term) -> Dfa:
        """Return the JSON spellings of a term.

        Raises: UnsupportedSchema — a limit.
        """
        machine = self.term(term)
        try:
            return self.quoted(machine)
        except AutomatonLimit as limit:
            raise self._refusal(limit, term.atoms) from None

    def without(self, machine: Dfa, excluded: frozenset[str]) -> Dfa:
        """Return an automaton's words without some."""
        return difference(machine, word_automaton(sorted(excluded))) if excluded else machine

    def _build(self, term: Term) -> Dfa:
        if term.most is not None and self._is_short(term):
            return self._short(term)
        machine = self._atoms_automaton(term.atoms)
        low, high = _needed_bounds(machine, term.least, term.most)
        if low or high is not None:
            machine = self._bounded(machine, low, high)
        return self.without(machine, term.excluded)

    def _is_short(self, term: Term) -> bool:
        """Return whether a format with length limits of its own meets a closer one."""
        if len(term.atoms) != 1:
            return False
        (atom,) = term.atoms
        if not (atom.positive and atom.text in SHORT_FORMATS and atom.kind is AtomKind.FORMAT):
            return False
        longest = longest_characters(self._affirmed(atom))
        return longest is None or longest > (term.most or 0)

    def _short(self, term: Term) -> Dfa:
        """Return a format under a length bound that implies the limits inside it.

        Math: no part of a text of at most 63 characters is longer than 63 characters.
        """
        (atom,) = term.atoms
        most = min(term.most or 0, SHORT_CHARACTERS)
        machine = self._bounded(format_automaton(atom.text, short=True), term.least, most)
        return self.without(machine, term.excluded)

    def _bounded(self, machine: Dfa, low: int, high: int | None) -> Dfa:
        machine = with_length(machine, low, high, EDGE_LIMIT)
        self._steps.spend(_STEPS_A_LONG_EDGE * sum(map(len, machine.edges)))
        return machine

    def _atoms_automaton(self, atoms: frozenset[Atom]) -> Dfa:
        ordered = sorted(atoms, key=lambda a: (not a.positive, a.kind.value, a.text))
        machine: Dfa | None = None
        for atom in ordered:
            affirmed = self._affirmed(atom)
            if machine is None:
                machine = affirmed if atom.positive else complement(affirmed)
            else:
                combine = intersection if atom.positive else difference
                machine = self._combined(combine, machine, affirmed)
        return ANY_TEXT if machine is None else machine

    def _combined(self, combine: Callable[[Dfa, Dfa], Dfa], first: Dfa, second: Dfa) -> Dfa:
        edges = max(len(row) for machine in (first, second) for row in machine.edges)
        self.work += first.state_count * second.state_count * (edges + 1)
        if self.work > WORK_LIMIT:
            raise AutomatonLimit("automaton state pairs", WORK_LIMIT)
        return combine(first, second)

    def _refusal(self, limit: AutomatonLimit, atoms: frozenset[Atom]) -> UnsupportedSchema:
        atom = min(atoms, key=lambda a: (a.kind.value, a.text), default=None)
        return UnsupportedSchema(
            f"needs {limit}",
            keyword="pattern" if atom is None else atom.kind.value,
            location=JsonPointer() if atom is None else self.places.get(atom.text, JsonPointer()),
        )

    def _affirmed(self, atom: Atom) -> Dfa:
        key = atom._replace(positive=True)
        found = self._atoms.get(key)
        if found is None:
            if atom.kind is AtomKind.PATTERN:
                found = pattern_automaton(atom.text, work=self._steps)
            else:
                found = format_automaton(atom.text)
            self._atoms[key] = found
        return found


def _needed_bounds(dfa: Dfa, low: int, high: int | None) -> tuple[int, int | None]:
    """Return the bounds that exclude a word at all, 0 and None for the others."""
    if low and (shortest_characters(dfa) or 0) >= low:
        low = 0
    if high is not None:
        longest = longest_characters(dfa)
        if longest is not None and longest <= high:
            high = None
    return low, high
