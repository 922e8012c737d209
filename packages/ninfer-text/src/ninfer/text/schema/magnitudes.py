"""Decimal magnitudes as digit strings, compared while a spelling is read."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

Order = int
"""-1, 0 or 1: what was read is below, equal to, or above a bound."""


class Magnitude(NamedTuple):
    """A nonnegative decimal in both notations: ``whole.fraction`` and ``m.antissa`` e exponent."""

    whole: str
    fraction: str
    mantissa: str
    exponent: int

    @classmethod
    def of(cls, value: Decimal) -> Magnitude:
        """Return the digits of a nonnegative number; zero has none."""
        _, digits, power = value.normalize().as_tuple()
        assert isinstance(power, int)
        text = "".join(map(str, digits)).strip("0")
        power += len(digits) - len("".join(map(str, digits)).rstrip("0"))
        point = len(text) + power
        if not text:
            return cls("", "", "", 0)
        if point <= 0:
            return cls("", "0" * -point + text, text, point - 1)
        return cls(text[:point].ljust(point, "0"), text[point:], text, point - 1)


def next_order(order: Order, digits: str, place: int, digit: str) -> Order:
    """Return the order after one more digit; a bound's digits go on with zeros."""
    if order:
        return order
    bound = digits[place] if place < len(digits) else "0"
    return (digit > bound) - (digit < bound)


def final_order(order: Order, digits: str, place: int) -> Order:
    """Return the order of a digit string that ends here; bounds have no trailing zeros."""
    return -1 if not order and place < len(digits) else order


def order_by_length(order: Order, places: int, bound_places: int) -> Order:
    """Return the order of whole numbers without leading zeros."""
    return order if places == bound_places else 1 if places > bound_places else -1
