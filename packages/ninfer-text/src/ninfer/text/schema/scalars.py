"""The texts of numbers and strings."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil, floor

from ninfer.text.automata.characters import ANY_CHARACTER
from ninfer.text.automata.dfa import Dfa
from ninfer.text.automata.words import word_automaton
from ninfer.text.grammar import (
    Automaton,
    Literal,
    Node,
    alternation,
)
from ninfer.text.json_rules import JSON_RULES, STRING
from ninfer.text.json_source import write_json
from ninfer.text.schema.decimals import decimal_automaton, is_unbounded
from ninfer.text.schema.escaping import quoted
from ninfer.text.schema.numbers import INT64, Between, NumberSet, Whole
from ninfer.text.schema.rules import Rules
from ninfer.text.schema.runs import Run, run_node, run_of
from ninfer.text.schema.string_automata import StringAutomata
from ninfer.text.schema.strings import ANY_TERM, StringSet, Term
from ninfer.text.schema.whole_numbers import INT64_HIGH, INT64_LOW, whole_automaton

FLAT_LIMIT = 8
"""How many texts stand as plain alternatives; more become an automaton."""


def texts_node(texts: list[str]) -> Node:
    """Return the union of whole texts."""
    if len(texts) <= FLAT_LIMIT:
        return alternation(*map(Literal, texts))
    return Automaton(word_automaton(sorted(set(texts))))


def number_nodes(numbers: NumberSet) -> Iterator[Node]:
    """Yield the spellings of a set of numbers.

    Where an interval has all its whole numbers, one automaton spells both; signed 64-bit whole
    numbers always have their digits.
    """
    spelled: set[Whole] = set()
    points = [_point(piece) for piece in numbers.betweens]
    if len(points) <= FLAT_LIMIT:
        points = [None] * len(points)
    for piece, text in zip(numbers.betweens, points, strict=True):
        if text is not None:
            yield Literal(text)
            continue
        whole = _whole_part(piece)
        covers = whole is None or any(_covers(other, whole) for other in numbers.wholes)
        yield Automaton(decimal_automaton(piece, is_fractional=not covers))
        if covers and whole is not None and is_unbounded(piece):
            spelled.add(whole)
    for whole in numbers.wholes:
        if whole in spelled:
            continue
        if (
            whole.low is not None
            and whole.low == whole.high
            and INT64_LOW <= whole.low <= INT64_HIGH
        ):
            yield Literal(str(whole.low))
        else:
            yield Automaton(whole_automaton(whole))


def _whole_part(piece: Between) -> Whole | None:
    """Return the whole numbers between the ends of an interval, as written and as binary64."""
    low = None if piece.low is None else max(_readings(piece.low))
    high = None if piece.high is None else min(_readings(piece.high))
    least = None if low is None else floor(low) + 1 if piece.low_open else ceil(low)
    most = None if high is None else ceil(high) - 1 if piece.high_open else floor(high)
    return None if least is not None and most is not None and least > most else Whole(least, most)


def _readings(bound: Fraction) -> tuple[Fraction, Fraction]:
    return bound, Fraction(float(bound))


def _covers(other: Whole, whole: Whole) -> bool:
    below = other.low is None or (whole.low is not None and whole.low >= other.low)
    above = other.high is None or (whole.high is not None and whole.high <= other.high)
    return other.step == 1 and below and above


def _point(piece: Between) -> str | None:
    """Return the shortest spelling of a single number."""
    if piece.low is None or piece.low != piece.high:
        return None
    return decimal_text(piece.low)


def decimal_text(value: Fraction) -> str:
    """Return the spelling of a value read without rounding: digits of int64, else binary64's."""
    is_whole = value.denominator == 1 and value.numerator in INT64
    return str(value.numerator) if is_whole else repr(float(value))


def string_nodes(strings: StringSet, automata: StringAutomata, rules: Rules) -> Iterator[Node]:
    """Yield the JSON spellings of a set of strings.

    Listed strings and runs over one set of characters take no automaton; other terms do.
    """
    if strings.finite:
        yield texts_node([write_json(text) for text in strings.finite])
    for term in strings.terms:
        if term == ANY_TERM:
            yield rules.shared(STRING, JSON_RULES)
            continue
        run = _run(term, automata)
        yield Automaton(automata.spelled(term)) if run is None else run_node(run, rules)


def _run(term: Term, automata: StringAutomata) -> Run | None:
    """Return the run of a term whose atoms describe one; lengths only narrow it."""
    if term.excluded:
        return None
    run: Run | None = Run(ANY_CHARACTER, 0, None)
    if term.atoms:
        run = run_of(automata.term(Term(atoms=term.atoms)))
    if run is None:
        return None
    low = max(run.low, term.least)
    if run.high is None or term.most is None:
        return Run(run.members, low, term.most if run.high is None else run.high)
    return Run(run.members, low, min(run.high, term.most))


def key_automaton(keys: StringSet, excluded: frozenset[str], automata: StringAutomata) -> Dfa:
    """Return the quoted names of a key class without the names that are known."""
    dfa = automata.strings(keys)
    return quoted(automata.without(dfa, excluded))
