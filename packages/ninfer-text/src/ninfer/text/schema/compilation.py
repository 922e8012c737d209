"""A schema's source text to the grammar of its values."""

from __future__ import annotations

from collections.abc import Mapping

from ninfer.contract.constraint import ConstraintKind, UnknownKeywords
from ninfer.contract.errors import UnsatisfiableConstraint
from ninfer.contract.location import JsonPointer
from ninfer.text.grammar import NOTHING, Grammar, Node
from ninfer.text.productive import productive_rules, without_dead_branches
from ninfer.text.schema.emission import Emission
from ninfer.text.schema.reduction import Reduction
from ninfer.text.schema.source import read_schema


def schema_grammar(
    source: str, unknown_keywords: UnknownKeywords = UnknownKeywords.REFUSE
) -> Grammar:
    """Return the grammar of the compact texts that a schema allows.

    Raises: InvalidSchema, UnsupportedSchema — with the JSON Pointer of the keyword, or line and
            column where the text is not JSON; UnsatisfiableConstraint — no value satisfies it.
    """
    reduction = Reduction(read_schema(source, unknown_keywords))
    emission = Emission(reduction)
    entry = emission.value(reduction.root)
    grammar = _living(entry, emission.finish())
    if grammar.entry == NOTHING:
        raise UnsatisfiableConstraint(
            "no value satisfies the schema",
            kind=ConstraintKind.JSON_SCHEMA,
            location=JsonPointer(),
        )
    return grammar


def _living(entry: Node, rules: Mapping[str, Node]) -> Grammar:
    """Return the grammar without dead branches; where every rule has a word there are none."""
    grammar = Grammar(entry, rules)
    if len(productive_rules(rules)) == len(rules):
        return grammar
    return without_dead_branches(grammar)
