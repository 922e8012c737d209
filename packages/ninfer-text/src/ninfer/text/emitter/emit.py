"""Grammar to EBNF text."""

from __future__ import annotations

from collections.abc import Iterator

from ninfer.text.automata.characters import CharacterSet
from ninfer.text.emitter.follow import follow_sets
from ninfer.text.emitter.lowering import lower
from ninfer.text.emitter.machine import spell_machine
from ninfer.text.emitter.productions import Productions, spell_body
from ninfer.text.emitter.spelling import spell_class
from ninfer.text.grammar import Grammar

ROOT = "root"

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
    following = follow_sets(productions)
    hints = {members: _hint(members) for members in set(following.values())}
    for name, body in productions.bodies.items():
        hint = "" if name == ROOT else hints[following[name]]
        if name in productions.machines:
            for state, spelled in spell_machine(productions.machines[name].dfa, name):
                yield f"{state} ::= ({spelled}){hint}\n"
        else:
            spelled = spell_body(body)
            yield f"{name} ::= {f'({spelled})' if hint and len(body) > 1 else spelled}{hint}\n"


def _hint(following: CharacterSet | None) -> str:
    """Return the annotation of what may follow, where that excludes enough to be worth a look."""
    if following is None or len(following) > _FOLLOW_LIMIT:
        return ""
    return f" (= {spell_class(following)})"
