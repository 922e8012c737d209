"""The grammar of a whole-text expression."""

from __future__ import annotations

from ninfer.text.automata.limits import AutomatonLimit
from ninfer.text.automata.nfa import Nfa
from ninfer.text.automata.subset import determinise
from ninfer.text.grammar import Automaton, Grammar
from ninfer.text.nondeterministic import nondeterministic_grammar
from ninfer.text.regex.language import whole_expression
from ninfer.text.regex.reader import refuse

DETERMINISTIC_LIMIT = 16_384
"""States up to which an expression is determinised; beyond, the core follows several states."""


def regex_grammar(text: str) -> Grammar:
    """Return the grammar of the texts that match an expression from end to end.

    Raises: InvalidRegex — syntax, or the written-out expression passes a stated limit.
    """
    expression = whole_expression(text)
    try:
        nfa = Nfa.of(expression)
        try:
            return Grammar(Automaton(determinise(nfa, DETERMINISTIC_LIMIT)))
        except AutomatonLimit:
            return nondeterministic_grammar(nfa)
    except AutomatonLimit as limit:
        raise refuse(0, f"the expression needs {limit}") from limit
