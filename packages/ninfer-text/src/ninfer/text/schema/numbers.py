"""Sets of JSON numbers: unions of whole-number progressions and of intervals between them.

Exact arithmetic only. The whole numbers and the others are kept apart, because ``integer`` splits
every interval and only whole numbers have a form of their own in the generated language.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, lcm
from typing import NamedTuple

INT64 = range(-(1 << 63), 1 << 63)
"""The whole numbers that have digits of their own; those beyond are written with exponents."""


class Bound(NamedTuple):
    """A bound as it is written and as readers of JSON have it.

    Digits alone are read exactly, everything else as the nearest binary64.
    """

    written: Fraction
    read: Fraction


class Whole(NamedTuple):
    """The multiples of ``step`` between two whole numbers, both included; None is unbounded."""

    low: int | None
    high: int | None
    step: int = 1

    def holds(self, value: int) -> bool:
        """Return whether a whole number is a member."""
        above = self.low is None or value >= self.low
        return above and (self.high is None or value <= self.high) and value % self.step == 0


class Between(NamedTuple):
    """The numbers of an interval that are not whole; None is unbounded, ``open`` excludes an end.

    ``unit`` keeps its multiples only. A whole number that its digits do not spell may stand alone.
    """

    low: Fraction | None
    high: Fraction | None
    low_open: bool = False
    high_open: bool = False
    unit: Fraction | None = None

    @property
    def is_empty(self) -> bool:
        """Return whether no number that is not whole lies inside."""
        if self.unit is not None and self.unit.denominator == 1:
            return True
        if self.low is None or self.high is None:
            return False
        if self.low == self.high:
            return self.low_open or self.high_open or _has_digits(self.low)
        return self.low > self.high

    def holds(self, value: Fraction) -> bool:
        """Return whether a number that is not whole is a member."""
        if self.unit is not None and (value / self.unit).denominator != 1:
            return False
        if self.low is not None and (value < self.low or (self.low_open and value == self.low)):
            return False
        return self.high is None or (
            value < self.high or (value == self.high and not self.high_open)
        )


def _has_digits(value: Fraction) -> bool:
    """Return whether digits alone read as a number and as the binary64 nearest to it."""
    is_whole = value.denominator == 1 and value.numerator in INT64
    return is_whole and Fraction(float(value)) == value


class NotComplementable(Exception):
    """The complement has no closed form here."""


@dataclass(frozen=True, slots=True)
class NumberSet:
    """A union of progressions of whole numbers and of intervals of other numbers."""

    wholes: tuple[Whole, ...] = ()
    betweens: tuple[Between, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.wholes or self.betweens)

    def holds(self, value: Fraction) -> bool:
        """Return whether a number is a member."""
        if value.denominator == 1:
            return any(piece.holds(value.numerator) for piece in self.wholes)
        return any(piece.holds(value) for piece in self.betweens)

    def __and__(self, other: NumberSet) -> NumberSet:
        wholes = (_meet_wholes(a, b) for a in self.wholes for b in other.wholes)
        betweens = (_meet_betweens(a, b) for a in self.betweens for b in other.betweens)
        return NumberSet(
            _joined([piece for piece in wholes if piece is not None]),
            tuple(dict.fromkeys(piece for piece in betweens if not piece.is_empty)),
        )

    def __or__(self, other: NumberSet) -> NumberSet:
        return union((self, other))

    def __invert__(self) -> NumberSet:
        """Return every other number.

        Raises: NotComplementable — a member is a set of multiples.
        """
        rest = ANY_NUMBER
        for whole in self.wholes:
            rest &= _outside_whole(whole)
        for between in self.betweens:
            rest &= _outside_between(between)
        return rest


ANY_WHOLE = Whole(None, None)
ANY_BETWEEN = Between(None, None)
NO_NUMBER = NumberSet()
ANY_NUMBER = NumberSet((ANY_WHOLE,), (ANY_BETWEEN,))
ANY_INTEGER = NumberSet((ANY_WHOLE,))


def union(sets: Iterable[NumberSet]) -> NumberSet:
    """Return the numbers of any of the sets."""
    wholes: list[Whole] = []
    betweens: dict[Between, None] = {}
    for numbers in sets:
        wholes += numbers.wholes
        betweens.update(dict.fromkeys(numbers.betweens))
    return NumberSet(_joined(wholes), tuple(betweens))


def point(value: Fraction) -> NumberSet:
    """Return the set of one number."""
    if value.denominator == 1:
        return NumberSet((Whole(value.numerator, value.numerator),))
    return NumberSet((), (Between(value, value),))


def at_least(bound: Bound, *, is_open: bool) -> NumberSet:
    """Return the numbers from a bound on.

    Math: digits alone are compared with the bound as it is read. Decimals are compared with it as
          it is written and read as binary64, so from a bound of many digits on they start behind
          the binary64 next to it where that one lies below.
    """
    low = floor(bound.read) + 1 if is_open else ceil(bound.read)
    starts_behind = is_open or Fraction(float(bound.written)) < bound.read
    return NumberSet((Whole(low, None),), (Between(bound.written, None, low_open=starts_behind),))


def at_most(bound: Bound, *, is_open: bool) -> NumberSet:
    """Return the numbers up to a bound, as ``at_least`` does from one on."""
    high = ceil(bound.read) - 1 if is_open else floor(bound.read)
    ends_before = is_open or Fraction(float(bound.written)) > bound.read
    return NumberSet((Whole(None, high),), (Between(None, bound.written, high_open=ends_before),))


def multiples(divisor: Fraction) -> NumberSet:
    """Return the multiples of a positive number.

    Math: n is a multiple of p/q in lowest terms exactly where p divides n.
    """
    wholes = (Whole(None, None, divisor.numerator),)
    if divisor.denominator == 1:
        return NumberSet(wholes)
    return NumberSet(wholes, (Between(None, None, unit=divisor),))


def _meet_wholes(a: Whole, b: Whole) -> Whole | None:
    low = b.low if a.low is None else a.low if b.low is None else max(a.low, b.low)
    high = b.high if a.high is None else a.high if b.high is None else min(a.high, b.high)
    step = lcm(a.step, b.step)
    if low is not None:
        low = -(-low // step) * step
    if high is not None:
        high = high // step * step
    return None if low is not None and high is not None and low > high else Whole(low, high, step)


def _meet_betweens(a: Between, b: Between) -> Between:
    low, low_open = a.low, a.low_open
    if b.low is not None and (low is None or (b.low, b.low_open) > (low, low_open)):
        low, low_open = b.low, b.low_open
    high, high_open = a.high, a.high_open
    if b.high is not None and (high is None or (b.high, not b.high_open) < (high, not high_open)):
        high, high_open = b.high, b.high_open
    return Between(low, high, low_open, high_open, _common_unit(a.unit, b.unit))


def _common_unit(a: Fraction | None, b: Fraction | None) -> Fraction | None:
    if a is None or b is None:
        return b if a is None else a
    return Fraction(lcm(a.numerator * b.denominator, b.numerator * a.denominator)) / (
        a.denominator * b.denominator
    )


def _joined(pieces: list[Whole]) -> tuple[Whole, ...]:
    """Return the union with neighbouring plain intervals merged."""
    if len(pieces) < 2:
        return tuple(pieces)
    plain = [piece for piece in pieces if piece.step == 1]
    plain.sort(key=lambda piece: (piece.low is not None, piece.low or 0))
    merged: list[Whole] = []
    for piece in plain:
        last = merged[-1] if merged else None
        if last is None or (
            last.high is not None and piece.low is not None and piece.low > last.high + 1
        ):
            merged.append(piece)
        elif last.high is not None and (piece.high is None or piece.high > last.high):
            merged[-1] = Whole(last.low, piece.high)
    return (*merged, *dict.fromkeys(piece for piece in pieces if piece.step != 1))


def _outside_whole(piece: Whole) -> NumberSet:
    if piece.step != 1 and (piece.low is None or piece.low != piece.high):
        raise NotComplementable
    wholes = []
    if piece.low is not None:
        wholes.append(Whole(None, piece.low - 1))
    if piece.high is not None:
        wholes.append(Whole(piece.high + 1, None))
    return NumberSet(tuple(wholes), (ANY_BETWEEN,))


def _outside_between(piece: Between) -> NumberSet:
    if piece.unit is not None:
        raise NotComplementable
    betweens = []
    if piece.low is not None:
        betweens.append(Between(None, piece.low, high_open=not piece.low_open))
    if piece.high is not None:
        betweens.append(Between(piece.high, None, low_open=not piece.high_open))
    return NumberSet((ANY_WHOLE,), tuple(betweens))
