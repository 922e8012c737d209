"""Strings written raw between the framing line breaks, as languages that end with the closing.

Math: the values are those of the closed form that do not hold the closing; the closing follows. Of
      strings with a length bound and no pattern, those that hold both a line break and ``<`` are
      left out too.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ninfer.qwen_frontend.stage_grammar import first_occurrence, without
from ninfer.qwen_frontend.tool_values import VALUE_CLOSING, is_representable
from ninfer.text.automata.characters import ANY_CHARACTER, CharacterSet
from ninfer.text.automata.dfa import Dfa
from ninfer.text.automata.operations import intersection
from ninfer.text.automata.words import word_automaton
from ninfer.text.grammar import (
    Automaton,
    Characters,
    Literal,
    Node,
    Reference,
    alternation,
    concatenation,
    repetition,
)
from ninfer.text.schema.string_automata import StringAutomata
from ninfer.text.schema.strings import ANY_TERM, StringSet, Term

_FLAT_LIMIT = 8
_EXACT_LEAST = 4
ANY_TEXT = Reference("raw_text")
"""Any text up to and with the closing."""

RAW_RULES: Mapping[str, Node] = MappingProxyType(
    {ANY_TEXT.rule: Automaton(first_occurrence(VALUE_CLOSING))}
)
"""The rule of any text, the same in every grammar so that its masks are shared."""


def raw_value(strings: StringSet, automata: StringAutomata) -> Node:
    """Return a set of strings, each followed by the closing.

    Raises: AutomatonLimit.
    """
    options = [_term(term, automata) for term in strings.terms]
    return alternation(*_listed(strings.finite), *options)


def unrepresentable(strings: StringSet) -> str | None:
    """Return a listed string that holds the closing, or None."""
    return next((text for text in strings.finite if not is_representable(text)), None)


def _listed(texts: tuple[str, ...]) -> list[Node]:
    if len(texts) > _FLAT_LIMIT:
        return [_closed(Automaton(word_automaton(sorted(set(texts)))))]
    return [Literal(text + VALUE_CLOSING) for text in texts]


def _term(term: Term, automata: StringAutomata) -> Node:
    if term == ANY_TERM:
        return ANY_TEXT
    if term.is_plain and (term.most is not None or term.least > _EXACT_LEAST):
        return _closed(_of_length(term.least, term.most))
    return _closed(Automaton(_without_closing(automata.term(term))))


def _of_length(least: int, most: int | None) -> Node:
    """Return texts of a length range.

    Too short for the closing: every text. Otherwise those without a line break and those without
    ``<``: counting characters along an automaton of the closing would cost a state a character.
    """
    if most is not None and most < len(VALUE_CLOSING):
        return repetition(Characters(ANY_CHARACTER), least, most)
    return alternation(
        *(repetition(Characters(~CharacterSet.from_text(c)), least, most) for c in "\n<")
    )


def _without_closing(values: Dfa) -> Dfa:
    return intersection(values, without(VALUE_CLOSING))


def _closed(values: Node) -> Node:
    return concatenation(values, Literal(VALUE_CLOSING))
