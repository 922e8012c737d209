"""Determinisation by subsets."""

from __future__ import annotations

from ninfer.text.automata.alphabet import Alphabet
from ninfer.text.automata.dfa import Dfa
from ninfer.text.automata.expression import Expression
from ninfer.text.automata.limits import STATE_LIMIT, AutomatonLimit, Work
from ninfer.text.automata.minimal import minimal
from ninfer.text.automata.nfa import Nfa
from ninfer.text.automata.table import Table

_STEPS_AN_EDGE = 20

_Move = tuple[tuple[int, ...], tuple[int, ...]]
"""The classes that a state reads, and the states that this leads to."""


def compile_expression(
    expression: Expression, limit: int = STATE_LIMIT, work: Work | None = None
) -> Dfa:
    """Return the minimal automaton of an expression.

    Raises: AutomatonLimit — more than ``limit`` states on the way, or too much work on them.
    """
    work = work or Work()
    return determinise(Nfa.of(expression, work=work), limit, work)


def determinise(nfa: Nfa, limit: int = STATE_LIMIT, work: Work | None = None) -> Dfa:
    """Return the minimal deterministic automaton of the same language.

    Raises: AutomatonLimit — the subsets are too many, or ``work`` has no more steps.
    """
    return minimal(_subsets(nfa, limit, work or Work()))


def _subsets(nfa: Nfa, limit: int, work: Work) -> Table:
    alphabet = Alphabet((reads[0] for reads in nfa.reads if reads is not None), work)
    closures = nfa.closures(work)
    moves: list[_Move | None] = [
        None if reads is None else (alphabet.classes[reads[0]], closures[reads[1]])
        for reads in nfa.reads
    ]
    steps = [0 if move is None else len(move[0]) * (1 + len(move[1])) for move in moves]
    start = closures[nfa.start]
    numbers: dict[tuple[int, ...], int] = {start: 0}
    subsets = [start]
    rows: list[dict[int, int]] = []
    for subset in subsets:
        work.spend(len(subset) + sum(steps[state] for state in subset))
        row: dict[int, int] = {}
        for character, target in _targets(subset, moves).items():
            number = numbers.get(target)
            if number is None:
                if len(subsets) >= limit:
                    raise AutomatonLimit.states(limit)
                number = numbers[target] = len(subsets)
                subsets.append(target)
            row[character] = number
        work.spend(_STEPS_AN_EDGE * len(row))
        rows.append(row)
    accepting = bytearray(nfa.accept in subset for subset in subsets)
    return Table(rows, accepting, alphabet.ranges)


def _targets(subset: tuple[int, ...], moves: list[_Move | None]) -> dict[int, tuple[int, ...]]:
    """Return the next subset for every class; each is sorted, so that equal sets are equal keys."""
    single: dict[int, tuple[int, ...]] = {}
    several: dict[int, set[int]] = {}
    for state in subset:
        move = moves[state]
        if move is None:
            continue
        classes, closure = move
        for character in classes:
            if character not in single:
                single[character] = closure
            elif single[character] is not closure:
                several.setdefault(character, set(single[character])).update(closure)
    single.update((c, tuple(sorted(targets))) for c, targets in several.items())
    return single
