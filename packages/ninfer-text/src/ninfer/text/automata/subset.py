"""Determinisation by subsets."""

from __future__ import annotations

from ninfer.text.automata.alphabet import Alphabet
from ninfer.text.automata.dfa import Dfa
from ninfer.text.automata.expression import Expression
from ninfer.text.automata.limits import MEMBER_LIMIT, STATE_LIMIT, AutomatonLimit
from ninfer.text.automata.minimal import minimal
from ninfer.text.automata.nfa import Nfa
from ninfer.text.automata.table import Table


def compile_expression(expression: Expression, limit: int = STATE_LIMIT) -> Dfa:
    """Return the minimal automaton of an expression.

    Raises: AutomatonLimit — more than ``limit`` states on the way, or too much work on them.
    """
    return determinise(Nfa.of(expression), limit)


def determinise(nfa: Nfa, limit: int = STATE_LIMIT) -> Dfa:
    """Return the minimal deterministic automaton of the same language.

    Raises: AutomatonLimit — the subsets, or their members together, are too many.
    """
    return minimal(_subsets(nfa, limit))


def _subsets(nfa: Nfa, limit: int) -> Table:
    alphabet = Alphabet(reads[0] for reads in nfa.reads if reads is not None)
    closures = nfa.closures()
    moves = [
        None if reads is None else (alphabet.classes[reads[0]], closures[reads[1]])
        for reads in nfa.reads
    ]
    start = closures[nfa.start]
    numbers: dict[tuple[int, ...], int] = {start: 0}
    subsets = [start]
    rows: list[dict[int, int]] = []
    members = 0
    for subset in subsets:
        members += len(subset)
        if members > MEMBER_LIMIT:
            raise AutomatonLimit.members()
        row: dict[int, int] = {}
        for character, target in _targets(subset, moves).items():
            number = numbers.get(target)
            if number is None:
                if len(subsets) >= limit:
                    raise AutomatonLimit.states(limit)
                number = numbers[target] = len(subsets)
                subsets.append(target)
            row[character] = number
        rows.append(row)
    accepting = bytearray(nfa.accept in subset for subset in subsets)
    return Table(rows, accepting, alphabet.ranges)


def _targets(
    subset: tuple[int, ...], moves: list[tuple[tuple[int, ...], tuple[int, ...]] | None]
) -> dict[int, tuple[int, ...]]:
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
