"""The grammar of a GBNF text: names resolved, token references checked."""

from __future__ import annotations

from ninfer.contract.errors import InvalidGrammar, InvalidTokenReference
from ninfer.contract.location import TextPosition
from ninfer.contract.vocabulary import TokenVocabulary
from ninfer.text.crowding import BEGINNING_LIMIT, crowds
from ninfer.text.gbnf.parser import Rules, parse_gbnf
from ninfer.text.grammar import Grammar, Reference
from ninfer.text.regular import with_automata
from ninfer.text.rows import longest_optional_row, nullable_rules, without_idle_copies
from ninfer.text.written import WRITTEN_LIMIT, written_symbols

ENTRY_RULE = "root"
OPTIONAL_PARTS_LIMIT = 128
"""Parts next to each other that may all be absent."""
CIRCLE_LIMIT = 128
"""Parts that may be absent in rules that begin with one another in a circle."""
CIRCLE_RULE_LIMIT = 512
"""Rules that begin with one another in a circle, such as levels of operators."""


def gbnf_grammar(text: str, vocabulary: TokenVocabulary) -> Grammar:
    """Return the grammar of a GBNF text as it is written, entered at ``root``.

    Effects: rules that ``root`` does not reach are checked like any other, then left out.
    Raises:  InvalidGrammar — syntax, a passed limit, no ``root``, an undefined rule;
             InvalidTokenReference — a token that visible text may not use.
    """
    return _grammar(_rules(text, vocabulary))


def gbnf_language(text: str, vocabulary: TokenVocabulary) -> Grammar:
    """Return the grammar of a GBNF text with its regular parts as automata.

    Raises: as ``gbnf_grammar``; InvalidGrammar — too much may come next at one place.
    """
    rules = _rules(text, vocabulary)
    grammar = with_automata(_grammar(rules))
    _require_short(text, rules, grammar)
    _require_little_at_once(text, rules, grammar)
    return grammar


def _rules(text: str, vocabulary: TokenVocabulary) -> Rules:
    rules = parse_gbnf(text)
    if ENTRY_RULE not in rules.bodies:
        raise InvalidGrammar("no rule is called root", location=TextPosition(1, 1))
    for offset, name in rules.uses:
        if name not in rules.bodies:
            place = TextPosition.of_offset(text, offset)
            raise InvalidGrammar(f"the rule {name} is not defined", location=place)
    _require_text_tokens(text, rules, vocabulary)
    return rules


def _grammar(rules: Rules) -> Grammar:
    nullable = nullable_rules(rules.bodies)
    bodies = {n: without_idle_copies(body, nullable) for n, body in rules.bodies.items()}
    return Grammar(Reference(ENTRY_RULE), bodies)


def _require_text_tokens(text: str, rules: Rules, vocabulary: TokenVocabulary) -> None:
    for offset, token in rules.token_uses:
        try:
            vocabulary.require_text(token)
        except InvalidTokenReference as error:
            place = TextPosition.of_offset(text, offset)
            raise InvalidTokenReference(error.fact, location=place) from None


def _require_short(text: str, rules: Rules, grammar: Grammar) -> None:
    symbols = 0
    for name, body in grammar.rules.items():
        symbols += written_symbols(body)
        if symbols > WRITTEN_LIMIT:
            fact = (
                f"the grammar needs more than {WRITTEN_LIMIT} symbols once copies are written out"
            )
            raise _at_rule(text, rules, name, fact)


def _require_little_at_once(text: str, rules: Rules, grammar: Grammar) -> None:
    """Refuse what the core would have to follow at one place by the thousand."""
    nullable = nullable_rules(grammar.rules)
    for name, body in grammar.rules.items():
        if longest_optional_row(body, nullable) > OPTIONAL_PARTS_LIMIT:
            fact = f"more than {OPTIONAL_PARTS_LIMIT} parts in a row may be absent"
            raise _at_rule(text, rules, name, fact)
    for crowd in crowds(grammar.rules, nullable):
        if crowd.absent_in_circle > CIRCLE_LIMIT:
            fact = f"more than {CIRCLE_LIMIT} parts that may be absent lead back to each other"
            raise _at_rule(text, rules, crowd.rule, fact)
        if crowd.rules_in_circle > CIRCLE_RULE_LIMIT:
            fact = f"more than {CIRCLE_RULE_LIMIT} rules begin with each other in a circle"
            raise _at_rule(text, rules, crowd.rule, fact)
        if crowd.parts > BEGINNING_LIMIT:
            fact = f"more than {BEGINNING_LIMIT} parts may begin at one place"
            raise _at_rule(text, rules, crowd.rule, fact)


def _at_rule(text: str, rules: Rules, name: str, fact: str) -> InvalidGrammar:
    return InvalidGrammar(fact, location=TextPosition.of_offset(text, rules.places[name]))
