"""What an expression means: a language of whole texts, or of texts that contain a match."""

from __future__ import annotations

from ninfer.text.automata.dfa import Dfa
from ninfer.text.automata.expression import ANYTHING, Either, Expression, Then
from ninfer.text.automata.limits import STATE_LIMIT, Work
from ninfer.text.automata.subset import compile_expression
from ninfer.text.regex.parser import Branch, parse_regex


def whole_expression(text: str) -> Expression:
    """Return the expression of the texts that match from end to end.

    Raises: InvalidRegex.
    """
    return _either([branch.expression for branch in parse_regex(text)])


def search_expression(text: str) -> Expression:
    """Return the expression of the texts that contain a match, as JSON Schema's pattern means it.

    Raises: InvalidRegex.
    """
    return _either([_contained(branch) for branch in parse_regex(text)])


def pattern_automaton(text: str, limit: int = STATE_LIMIT, work: Work | None = None) -> Dfa:
    """Return the minimal automaton of the texts that contain a match.

    Raises: InvalidRegex; AutomatonLimit — more than ``limit`` states on the way, or ``work``
            has no more steps.
    """
    return compile_expression(search_expression(text), limit, work)


def _contained(branch: Branch) -> Expression:
    before = () if branch.at_start else (ANYTHING,)
    after = () if branch.at_end else (ANYTHING,)
    return Then((*before, branch.expression, *after))


def _either(options: list[Expression]) -> Expression:
    return options[0] if len(options) == 1 else Either(tuple(options))
