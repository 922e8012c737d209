"""From a caller's constraint to a grammar: validation and conversion, one front end per kind."""

from __future__ import annotations

from ninfer.contract.constraint import ConstraintKind, OutputConstraint
from ninfer.contract.errors import UnsatisfiableConstraint
from ninfer.contract.vocabulary import TokenVocabulary
from ninfer.text.choice import choice_grammar
from ninfer.text.grammar import NOTHING, Grammar
from ninfer.text.json_rules import json_object_grammar
from ninfer.text.productive import without_dead_branches


def admit(constraint: OutputConstraint, vocabulary: TokenVocabulary) -> Grammar:
    """Return the grammar of a constraint.

    Effects: alternatives and rules without a finite word are gone from the result.
    Raises:  InvalidGrammar, InvalidTokenReference, InvalidRegex, InvalidChoice, InvalidSchema,
             UnsupportedSchema — with the place in the constraint's own text;
             UnsatisfiableConstraint — no finite text satisfies the constraint.
    """
    if constraint.kind is ConstraintKind.JSON_SCHEMA:
        from ninfer.text.schema import schema_grammar

        return schema_grammar(constraint.source, constraint.unknown_keywords)
    grammar = without_dead_branches(_grammar(constraint, vocabulary))
    if grammar.entry == NOTHING:
        raise UnsatisfiableConstraint("no finite text satisfies it", kind=constraint.kind)
    return grammar


def _grammar(constraint: OutputConstraint, vocabulary: TokenVocabulary) -> Grammar:
    # A front end is read where its kind is asked for: a choice needs none of the large ones.
    match constraint.kind:
        case ConstraintKind.GRAMMAR:
            from ninfer.text.gbnf import gbnf_language

            return gbnf_language(constraint.source, vocabulary)
        case ConstraintKind.JSON_OBJECT:
            return json_object_grammar()
        case ConstraintKind.CHOICE:
            return choice_grammar(constraint.literals)
        case _:
            from ninfer.text.regex import regex_grammar

            return regex_grammar(constraint.source)
