r"""Strings written raw between the framing line breaks, as languages that end with the closing.

Math: the values are those of the closed form that do not hold the closing; the closing follows.
      With an upper length bound and no pattern they are one line: the closing begins with a line
      break, and a count along it has masks of 10 to 400 ms, a count of a line 20 µs. A pattern,
      such as ``^[\s\S]*$``, asks for the exact language at its price.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ninfer.qwen_frontend.closed_values import closed_values
from ninfer.qwen_frontend.stage_grammar import first_occurrence
from ninfer.qwen_frontend.tool_values import VALUE_CLOSING, is_representable
from ninfer.text.automata.characters import CharacterSet
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
_ANY_BUT_BREAK = Characters(~CharacterSet.from_text("\n"))
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
    if not term.is_plain:
        return Automaton(closed_values(automata.term(term), VALUE_CLOSING))
    if term.most is not None:
        return _closed(repetition(_ANY_BUT_BREAK, term.least, term.most))
    # A text of one line holds no closing, so any text may follow the characters that are counted.
    return concatenation(repetition(_ANY_BUT_BREAK, term.least, term.least), ANY_TEXT)


def _closed(values: Node) -> Node:
    return concatenation(values, Literal(VALUE_CLOSING))
