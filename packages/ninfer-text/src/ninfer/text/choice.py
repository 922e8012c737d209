"""Finite sets of literals."""

from __future__ import annotations

from collections.abc import Sequence

from ninfer.contract.errors import InvalidChoice
from ninfer.contract.location import OptionPath
from ninfer.text.automata.words import word_automaton
from ninfer.text.grammar import Automaton, Grammar, literal


def choice_grammar(literals: Sequence[str]) -> Grammar:
    """Return the grammar of a set of literals; order and repetition do not matter.

    Raises: InvalidChoice — the list is empty, or a literal is not Unicode text.
    """
    distinct = canonical_choice(literals)
    if len(distinct) == 1:
        return Grammar(literal(distinct[0]))
    return Grammar(Automaton(word_automaton(distinct)))


def canonical_choice(literals: Sequence[str]) -> tuple[str, ...]:
    """Return the literals sorted by code point, without repetitions.

    Raises: InvalidChoice — the list is empty, or a literal is not Unicode text.
    """
    if not literals:
        raise InvalidChoice("the list of choices is empty", location=OptionPath("choice"))
    for index, text in enumerate(literals):
        if any("\ud800" <= c <= "\udfff" for c in text):
            raise InvalidChoice(
                "the literal holds a lone surrogate", location=OptionPath("choice", index)
            )
    return tuple(sorted(set(literals)))
