"""The decimal spellings of whole numbers in an interval, as automata."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from ninfer.text.automata.characters import CharacterSet
from ninfer.text.automata.dfa import NOTHING, Dfa
from ninfer.text.automata.expression import Either, Expression, One, Repeat, Then, word
from ninfer.text.automata.operations import intersection
from ninfer.text.automata.subset import compile_expression
from ninfer.text.schema.numbers import Whole

INT64_LOW, INT64_HIGH = -(1 << 63), (1 << 63) - 1

STEP_LIMIT = 1000
"""The largest divisor whose multiples are an automaton."""


@lru_cache(maxsize=512)
def whole_automaton(piece: Whole) -> Dfa:
    """Return the spellings of the signed 64-bit members; a whole number has exactly one."""
    low = INT64_LOW if piece.low is None else max(piece.low, INT64_LOW)
    high = INT64_HIGH if piece.high is None else min(piece.high, INT64_HIGH)
    if low > high:
        return NOTHING
    interval = compile_expression(interval_expression(low, high))
    return interval if piece.step == 1 else intersection(interval, _multiples(piece.step))


def interval_expression(low: int, high: int) -> Expression:
    """Return the whole numbers of a closed interval, without leading zeros."""
    options: list[Expression] = []
    if low < 0:
        negative = Either(tuple(_naturals(max(1, -high), -low)))
        options.append(Then((word("-"), negative)))
    options += _naturals(max(low, 0), high)
    return Either(tuple(options))


def _naturals(low: int, high: int) -> Iterator[Expression]:
    """Yield disjoint expressions of low..high by number of digits."""
    while low <= high:
        last = min(high, 10 ** len(str(low)) - 1)
        yield _same_length(str(low), str(last))
        low = last + 1


def _same_length(low: str, high: str) -> Expression:
    """Return the digit strings between two of the same length."""
    if not low:
        return Then()
    rest = len(low) - 1
    if low.strip("0") == "" and high.strip("9") == "":
        return _any_digits(rest + 1)
    first, last = int(low[0]), int(high[0])
    if first == last:
        return Then((word(low[0]), _same_length(low[1:], high[1:])))
    options: list[Expression] = []
    if low[1:].strip("0"):
        options.append(Then((word(low[0]), _same_length(low[1:], "9" * rest))))
        first += 1
    if high[1:].strip("9"):
        options.append(Then((word(high[0]), _same_length("0" * rest, high[1:]))))
        last -= 1
    if first <= last:
        options.append(Then((_digit(first, last), _any_digits(rest))))
    return Either(tuple(options))


def _digit(low: int, high: int) -> Expression:
    return One(CharacterSet.of([(ord("0") + low, ord("0") + high)]))


def _any_digits(count: int) -> Expression:
    return Repeat(_digit(0, 9), count, count)


@lru_cache(maxsize=64)
def _multiples(step: int) -> Dfa:
    """Return the digit strings, sign allowed, whose value is a multiple of ``step``."""
    digits = [
        tuple((ord("0") + d,) * 2 + (2 + (10 * r + d) % step,) for d in range(10))
        for r in range(step)
    ]
    minus = (ord("-"), ord("-"), 1)
    edges = ((minus, *digits[0]), digits[0], *digits)
    return Dfa(edges, bytes([0, 0, 1] + [0] * (step - 1)))
