"""A schema's source text to the grammar of its values."""

from __future__ import annotations

from ninfer.contract.constraint import UnknownKeywords
from ninfer.contract.errors import UnsupportedSchema
from ninfer.contract.location import JsonPointer
from ninfer.text.grammar import Grammar
from ninfer.text.productive import productive_rules, without_dead_branches
from ninfer.text.schema.emission import Emission
from ninfer.text.schema.reduction import Reduction
from ninfer.text.schema.source import read_schema
from ninfer.text.schema.unsatisfiable import is_productive, refusal


def schema_grammar(
    source: str, unknown_keywords: UnknownKeywords = UnknownKeywords.REFUSE
) -> Grammar:
    """Return the grammar of the compact texts that a schema allows.

    Raises: InvalidSchema, UnsupportedSchema — with the JSON Pointer of the keyword, or line and
            column where the text is not JSON; UnsatisfiableConstraint — no value satisfies it.
    """
    reduction = Reduction(read_schema(source, unknown_keywords))
    emission = Emission(reduction)
    try:
        entry = emission.value(reduction.root)
        grammar = Grammar(entry, emission.finish())
    except RecursionError:
        raise UnsupportedSchema(
            "nests too deeply", keyword="schema_depth", location=JsonPointer()
        ) from None
    productive = productive_rules(emission.rules.bodies, emission.rules.sure)
    if not is_productive(entry, productive):
        raise refusal(emission, productive)
    # Emission leaves no dead branch where every rule has a word.
    return grammar if len(productive) == len(grammar.rules) else without_dead_branches(grammar)
