"""Grammar to EBNF text."""

from __future__ import annotations

from collections.abc import Iterator

from ninfer.text.automata.characters import CharacterSet
from ninfer.text.emitter.contexts import split_contexts
from ninfer.text.emitter.follow import Following
from ninfer.text.emitter.lowering import lower
from ninfer.text.emitter.machine import spell_machine
from ninfer.text.emitter.productions import Productions, spell_bodies
from ninfer.text.emitter.spelling import spell_class
from ninfer.text.grammar import Grammar

ROOT = "root"

_JSON_ENDS = CharacterSet.from_text(",}"), CharacterSet.from_text(",]")
"""What may follow a value in JSON: parts of it are rounded up, so that grammars share masks."""

_FOLLOW_LIMIT = 1_000
"""Characters: what nearly anything may follow gains nothing from a lookahead."""


def emit(grammar: Grammar) -> str:
    """Return the core's EBNF text of a grammar.

    Math:    the text describes the grammar's language; equal grammars give equal texts; the size is
             linear in nodes, automaton states, automaton edges and written-out repetitions.
    Effects: the root production is never called, since the core loses tokens that cross the end of
             an inner root.
    """
    return "".join(_lines(lower(grammar, ROOT)))


def _lines(productions: Productions) -> Iterator[str]:
    following = split_contexts(productions)
    hints = {known: _hint(known) for known in set(following.values())}
    for name, spelled in spell_bodies(productions.bodies):
        hint = "" if name == ROOT else hints[following[name]]
        if name in productions.machines:
            for state, ways in spell_machine(productions.machines[name].dfa, name):
                yield f"{state} ::= ({ways}){hint}\n"
        else:
            several = hint and len(productions.bodies[name]) > 1
            yield f"{name} ::= {f'({spelled})' if several else spelled}{hint}\n"


def _hint(following: Following) -> str:
    """Return the annotation of what may follow, where that excludes enough to be worth a look."""
    characters = following.characters
    if characters is None or len(characters) > _FOLLOW_LIMIT:
        return ""
    if characters:
        characters = next((ends for ends in _JSON_ENDS if not characters - ends), characters)
    return f" (= {spell_class(characters)})"
