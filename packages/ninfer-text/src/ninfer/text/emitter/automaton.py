"""The form of an automaton: a plain sequence, one expression, or right-linear productions."""

from __future__ import annotations

from ninfer.text.automata.characters import CharacterSet
from ninfer.text.automata.dfa import Dfa
from ninfer.text.emitter.elimination import eliminated
from ninfer.text.emitter.productions import (
    NOTHING,
    Alternative,
    Body,
    Call,
    Expression,
    Productions,
    Symbol,
    Text,
    one_of,
)
from ninfer.text.emitter.unfolding import unfolded


def lower_automaton(dfa: Dfa, productions: Productions) -> Body:
    """Return the body of an automaton; states that need one become productions.

    Math: an automaton without branches is a sequence. Otherwise one expression, as long as it
          stays linear in the edges; otherwise one production per state, chains of single steps
          joined, which stays linear for every automaton.
    """
    if dfa.is_empty:
        return NOTHING
    if not any(_branches(dfa, state) for state in range(dfa.state_count)):
        return _right_linear(dfa, productions)
    pattern = unfolded(dfa) or eliminated(dfa)
    if pattern is None:
        return _right_linear(dfa, productions)
    first = CharacterSet.of((low, high) for low, high, _ in dfa.edges[0])
    return ((Expression(pattern, first, nullable=bool(dfa.accepting[0])),),)


def _right_linear(dfa: Dfa, productions: Productions) -> Body:
    entering = _entering(dfa)
    heads = [s for s in range(1, dfa.state_count) if entering[s] > 1 or _branches(dfa, s)]
    heads = [s for s in heads if dfa.edges[s]]
    names = {s: productions.reserve(f"q{s}") for s in ([0] if entering[0] else []) + heads}
    for state, name in names.items():
        productions.define(name, _body(dfa, state, names))
    return ((Call(names[0]),),) if 0 in names else _body(dfa, 0, names)


def _entering(dfa: Dfa) -> list[int]:
    counts = [0] * dfa.state_count
    for edges in dfa.edges:
        for target in {t for _, _, t in edges}:
            counts[target] += 1
    return counts


def _branches(dfa: Dfa, state: int) -> bool:
    targets = {t for _, _, t in dfa.edges[state]}
    return len(targets) + dfa.accepting[state] != 1 or bool(dfa.accepting[state] and targets)


def _body(dfa: Dfa, state: int, names: dict[int, str]) -> Body:
    steps: dict[int, list[tuple[int, int]]] = {}
    for low, high, target in dfa.edges[state]:
        steps.setdefault(target, []).append((low, high))
    alternatives: list[Alternative] = [()] if dfa.accepting[state] else []
    alternatives += [
        (_step(ranges), *_rest(dfa, target, names)) for target, ranges in steps.items()
    ]
    return tuple(_joined(alternative) for alternative in alternatives)


def _rest(dfa: Dfa, state: int, names: dict[int, str]) -> list[Symbol]:
    """Return the symbols from a state to the next one that has a name, or to the end."""
    symbols: list[Symbol] = []
    while state not in names:
        edges = dfa.edges[state]
        if not edges:
            return symbols
        symbols.append(_step([(low, high) for low, high, _ in edges]))
        state = edges[0][2]
    return [*symbols, Call(names[state])]


def _step(ranges: list[tuple[int, int]]) -> Symbol:
    return one_of(CharacterSet.of(ranges))


def _joined(symbols: Alternative) -> Alternative:
    joined: list[Symbol] = []
    for symbol in symbols:
        if isinstance(symbol, Text) and joined and isinstance(joined[-1], Text):
            joined[-1] = Text(joined[-1].text + symbol.text)
        else:
            joined.append(symbol)
    return tuple(joined)
