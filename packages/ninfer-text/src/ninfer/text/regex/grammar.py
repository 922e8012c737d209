"""The grammar of a whole-text expression."""

from __future__ import annotations

from ninfer.text.automata.dfa import Dfa
from ninfer.text.automata.expression import Either, Expression, One, Repeat, Then
from ninfer.text.automata.limits import AutomatonLimit
from ninfer.text.automata.nfa import Nfa
from ninfer.text.automata.subset import determinise
from ninfer.text.crowding import BEGINNING_LIMIT, crowds
from ninfer.text.grammar import (
    Automaton,
    Characters,
    Grammar,
    Literal,
    Node,
    alternation,
    concatenation,
    literal,
    repetition,
)
from ninfer.text.nondeterministic import nondeterministic_grammar
from ninfer.text.regex.language import whole_expression
from ninfer.text.regex.reader import refuse
from ninfer.text.rows import nullable_rules
from ninfer.text.written import WRITTEN_LIMIT, written_symbols

DETERMINISTIC_LIMIT = 4_096
"""States up to which an expression is determinised: a matcher remembers three bytes a state for
every place it has been at."""
EDGE_LIMIT = 32_768
"""Edges up to which one is taken: as one expression the core may take seconds for more."""
SMALL = 1_024
"""States up to which a deterministic form is taken even where a shorter one exists."""

_SHORT = 128
_MANY_COPIES = 16


def regex_grammar(text: str) -> Grammar:
    """Return the grammar of the texts that match an expression from end to end.

    Math:   one deterministic machine; where that is large, rules that follow several states at
            once; where those are many, the expression as it is written, with its counts.
    Raises: InvalidRegex — syntax, or none of the forms keeps the stated limits.
    """
    expression = whole_expression(text)
    try:
        grammar = _grammar(expression)
        symbols = sum(map(written_symbols, (grammar.entry, *grammar.rules.values())))
        if symbols > WRITTEN_LIMIT:
            raise AutomatonLimit("symbols once copies are written out", WRITTEN_LIMIT)
        if not isinstance(grammar.entry, Automaton):
            _require_little_at_once(grammar)
    except AutomatonLimit as limit:
        raise refuse(0, f"the expression needs {limit}") from limit
    return grammar


def _require_little_at_once(grammar: Grammar) -> None:
    """Refuse what the core would have to follow at one place by the hundred."""
    rules = {**grammar.rules, "": grammar.entry}
    if any(crowd.parts > BEGINNING_LIMIT for crowd in crowds(rules, nullable_rules(rules))):
        raise AutomatonLimit("parts at the beginning of one place", BEGINNING_LIMIT)


def _grammar(expression: Expression) -> Grammar:
    if isinstance(expression, Then) and isinstance(text := _as_written(expression), Literal):
        return Grammar(text)
    nfa = Nfa.of(expression)
    dfa = _determinised(nfa)
    if dfa is not None and dfa.state_count <= SMALL:
        return Grammar(Automaton(dfa))
    if dfa is not None:
        return _short(nfa) or Grammar(Automaton(dfa))
    if _nested_counts(expression) <= 1:
        return _short(nfa) or Grammar(_as_written(expression))
    return nondeterministic_grammar(nfa)


def _determinised(nfa: Nfa) -> Dfa | None:
    try:
        dfa = determinise(nfa, DETERMINISTIC_LIMIT)
    except AutomatonLimit:
        return None
    return dfa if sum(map(len, dfa.edges)) <= EDGE_LIMIT else None


def _short(nfa: Nfa) -> Grammar | None:
    try:
        return nondeterministic_grammar(nfa, _SHORT)
    except AutomatonLimit:
        return None


def _nested_counts(expression: Expression) -> int:
    """Return how deep repetitions of many copies stand in one another.

    Two levels would have the core follow the product of their counts at once.
    """
    match expression:
        case One():
            return 0
        case Then(parts) | Either(parts):
            return max(map(_nested_counts, parts), default=0)
        case Repeat(item, _, high):
            return _nested_counts(item) + (high is None or high > _MANY_COPIES)


def _as_written(expression: Expression) -> Node:
    match expression:
        case One(members):
            # A row of letters is one text, and texts side by side become one automaton.
            is_letter = len(members) == 1
            return literal(chr(members.ranges[0][0])) if is_letter else Characters(members)
        case Then(parts):
            return concatenation(*map(_as_written, parts))
        case Either(parts):
            return alternation(*map(_as_written, parts))
        case Repeat(item, low, high):
            return repetition(_as_written(item), low, high)
