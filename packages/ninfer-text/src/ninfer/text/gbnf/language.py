"""The grammar of a GBNF text: names resolved, token references checked."""

from __future__ import annotations

from ninfer.contract.errors import InvalidGrammar, InvalidTokenReference
from ninfer.contract.location import TextPosition
from ninfer.contract.vocabulary import TokenVocabulary
from ninfer.text.gbnf.parser import Rules, parse_gbnf
from ninfer.text.gbnf.rows import longest_optional_row, nullable_rules
from ninfer.text.grammar import Grammar, Reference

ENTRY_RULE = "root"
OPTIONAL_PARTS_LIMIT = 128
"""Parts next to each other that may all be absent."""


def gbnf_grammar(text: str, vocabulary: TokenVocabulary) -> Grammar:
    """Return the grammar of a GBNF text, entered at ``root``.

    Effects: rules that ``root`` does not reach are checked like any other, then left out.
    Raises:  InvalidGrammar — syntax, a passed limit, no ``root``, an undefined rule;
             InvalidTokenReference — a token that visible text may not use.
    """
    rules = parse_gbnf(text)
    if ENTRY_RULE not in rules.bodies:
        raise InvalidGrammar("no rule is called root", location=TextPosition(1, 1))
    for offset, name in rules.uses:
        if name not in rules.bodies:
            place = TextPosition.of_offset(text, offset)
            raise InvalidGrammar(f"the rule {name} is not defined", location=place)
    _require_text_tokens(text, rules, vocabulary)
    _require_few_optional_parts(text, rules)
    return Grammar(Reference(ENTRY_RULE), rules.bodies)


def _require_text_tokens(text: str, rules: Rules, vocabulary: TokenVocabulary) -> None:
    for offset, token in rules.token_uses:
        try:
            vocabulary.require_text(token)
        except InvalidTokenReference as error:
            place = TextPosition.of_offset(text, offset)
            raise InvalidTokenReference(error.fact, location=place) from None


def _require_few_optional_parts(text: str, rules: Rules) -> None:
    """Refuse long rows of parts that may be absent: the core follows all of their beginnings."""
    nullable = nullable_rules(rules.bodies)
    for name, body in rules.bodies.items():
        if longest_optional_row(body, nullable) > OPTIONAL_PARTS_LIMIT:
            place = TextPosition.of_offset(text, rules.places[name])
            fact = f"more than {OPTIONAL_PARTS_LIMIT} parts in a row may be absent"
            raise InvalidGrammar(fact, location=place)
