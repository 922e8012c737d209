"""Right-linear productions of an automaton, as text: one per state that several ways lead to."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from ninfer.text.automata.characters import CharacterSet, Range
from ninfer.text.automata.dfa import Dfa
from ninfer.text.emitter.productions import one_of

_NAME = "\0"
"""Stands for the automaton's name in a text that is remembered; NUL itself is always escaped."""

_REMEMBERED_STATES = 64

_Steps = list[tuple[int, str]]
"""What a state goes on to: targets, and the characters that lead there as text."""


def spell_machine(dfa: Dfa, name: str) -> Iterator[tuple[str, str]]:
    """Yield a name and a right-hand side for every state that needs one, the start as ``name``.

    Math: a state that one way enters and that does not branch is written into the one before it.
    """
    spelled = _remembered(dfa) if dfa.state_count <= _REMEMBERED_STATES else _spelled(dfa)
    for state, ways in spelled:
        yield _state_name(state).replace(_NAME, name), ways.replace(_NAME, name)


@lru_cache(maxsize=256)
def _remembered(dfa: Dfa) -> tuple[tuple[int, str], ...]:
    return tuple(_spelled(dfa))


def _spelled(dfa: Dfa) -> Iterator[tuple[int, str]]:
    steps = _all_steps(dfa)
    own = _own(dfa, steps)
    for state, accepting in enumerate(dfa.accepting):
        if own[state] or state == 0:
            ways = [_way(text, target, steps, own) for target, text in steps[state]]
            yield state, " | ".join(['""', *ways] if accepting else ways)


def _way(text: str, target: int, steps: list[_Steps], own: list[bool]) -> str:
    """Return a step and all that follow it, up to a state that is called or to an end."""
    parts = [text]
    while not own[target] and steps[target]:
        ((target, text),) = steps[target]
        parts.append(text)
    if own[target]:
        parts.append(_state_name(target))
    return " ".join(parts)


def _state_name(state: int) -> str:
    return f"{_NAME}.{state}" if state else _NAME


def _all_steps(dfa: Dfa) -> list[_Steps]:
    """Return the targets of every state in order, each with its characters; equal ones once."""
    texts: dict[tuple[Range, ...], str] = {}
    steps: list[_Steps] = []
    for edges in dfa.edges:
        ranges: dict[int, tuple[Range, ...]] = {}
        for low, high, target in edges:
            ranges[target] = (*ranges.get(target, ()), (low, high))
        for members in ranges.values():
            if members not in texts:
                texts[members] = str(one_of(CharacterSet.of(members)))
        steps.append([(target, texts[ranges[target]]) for target in sorted(ranges)])
    return steps


def _own(dfa: Dfa, steps: list[_Steps]) -> list[bool]:
    """Return which states are called: entered by several ways, or branching; never plain ends."""
    entering = [0] * dfa.state_count
    for ways in steps:
        for target, _ in ways:
            entering[target] += 1
    return [
        bool(ways) and (count > 1 or (count == 1 and (len(ways) > 1 or bool(accepting))))
        for ways, count, accepting in zip(steps, entering, dfa.accepting, strict=True)
    ]
