"""The decimal spellings of the numbers in an interval, as automata.

Between bounds at most 17 significant digits, so that reading a spelling as binary64 and writing it
again stays inside the interval: rounding is monotone, and open ends move inward by one binary64.
Where nothing but a sign is bound, digits before and behind the point are counted by themselves,
which takes few states.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import cache, lru_cache
from math import inf, nextafter

from ninfer.text.automata.dfa import NOTHING, Dfa
from ninfer.text.automata.operations import union
from ninfer.text.automata.subset import compile_expression
from ninfer.text.regex.language import whole_expression
from ninfer.text.schema.exploration import explored
from ninfer.text.schema.magnitudes import Magnitude
from ninfer.text.schema.numbers import Between
from ninfer.text.schema.plain_decimals import PlainDecimals
from ninfer.text.schema.scientific_decimals import ScientificDecimals

LARGEST = Decimal("1.7976931348623157e308")

_FRACTION = r"(?:\.[0-9]{1,17})?"
_ONE = rf"[0-9]{_FRACTION}(?:[eE][+-]?(?:[0-9]{{1,2}}|[0-2][0-9]{{2}}|30[0-7]))?"
_MANY = rf"[1-9][0-9]{{1,18}}{_FRACTION}(?:[eE][+-]?(?:[0-9]{{1,2}}|[01][0-9]{{2}}|2[0-8][0-9]))?"
"""What reads as finite: the more digits before the point, the smaller the exponent."""


@lru_cache(maxsize=512)
def decimal_automaton(piece: Between, *, is_fractional: bool) -> Dfa:
    """Return the spellings of an interval's numbers.

    Math: whole numbers are included, as ``2``, ``2.0`` and ``2e0``, unless ``is_fractional``, which
          also leaves the exponent forms out.
    """
    if is_unbounded(piece) and not is_fractional:
        return _free_decimals(is_signed=piece.low is None)
    low, high = _bound(piece.low, piece.low_open, inf), _bound(piece.high, piece.high_open, -inf)
    result = NOTHING
    if high is None or high >= 0:
        floor = Decimal(0) if low is None else max(low, Decimal(0))
        result = _signed("", floor, high, is_fractional)
    if low is None or low < 0:
        floor = Decimal(0) if high is None else max(-high, Decimal(0))
        negative = _signed("-", floor, None if low is None else -low, is_fractional)
        result = union(result, negative)
    return result


def is_unbounded(piece: Between) -> bool:
    """Return whether an interval holds all numbers, or all that are not negative."""
    has_bottom = piece.low is not None and (piece.low != 0 or piece.low_open)
    return not has_bottom and piece.high is None and piece.unit is None


@cache
def _free_decimals(*, is_signed: bool) -> Dfa:
    """Return spellings that read as finite, of all numbers or of those that are not negative."""
    sign = "-?" if is_signed else ""
    return compile_expression(whole_expression(f"{sign}(?:{_ONE}|{_MANY})"))


def _bound(bound: Fraction | None, is_open: bool, inward: float) -> Decimal | None:
    """Return a bound itself, or for an open one the next binary64 inside.

    Assumes: the bound was read from a source without rounding, and is open where the binary64
             nearest to it lies outside.
    """
    if bound is None:
        return None
    if is_open:
        return Decimal(repr(nextafter(float(bound), inward)))
    return Decimal(bound.numerator) / Decimal(bound.denominator)


def _signed(sign: str, low: Decimal, high: Decimal | None, is_fractional: bool) -> Dfa:
    top = LARGEST if high is None else min(high, LARGEST)
    if low > top:
        return NOTHING
    bounds = Magnitude.of(low), Magnitude.of(top)
    plain = explored(PlainDecimals(sign, *bounds, is_fractional))
    if is_fractional or not top:
        return plain
    return union(plain, explored(ScientificDecimals(sign, *bounds)))
