"""The spellings ``12.34`` of the magnitudes between two bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ninfer.text.schema.magnitudes import (
    Magnitude,
    Order,
    final_order,
    next_order,
    order_by_length,
)

SIGNIFICANT = 17
FRACTIONAL_SIGNIFICANT = 15
"""With so few digits, what is no whole number does not become one in binary64."""
LEADING_ZEROS = 7
"""Zeros right behind the point; smaller magnitudes take an exponent."""


class PlainState(NamedTuple):
    """What was read: the stage, both orders, digits of this stage, significant digits."""

    stage: str
    low: Order = 0
    high: Order = 0
    place: int = 0
    significant: int = 0
    has_fraction: bool = False


@dataclass(frozen=True, slots=True)
class PlainDecimals:
    """A machine for one sign; ``is_fractional`` leaves whole numbers out."""

    sign: str
    low: Magnitude
    high: Magnitude
    is_fractional: bool

    @property
    def significant(self) -> int:
        """Return how many significant digits a spelling may have."""
        return FRACTIONAL_SIGNIFICANT if self.is_fractional else SIGNIFICANT

    @property
    def start(self) -> PlainState:
        """Return the first state."""
        return PlainState("sign" if self.sign else "first")

    def steps(self, state: PlainState) -> Iterator[tuple[str, PlainState]]:
        """Yield what a state reads."""
        match state.stage:
            case "sign":
                yield self.sign, PlainState("first")
            case "first":
                yield "0", self._behind_whole(PlainState("zero"))
                yield from ((digit, self._whole(state, digit)) for digit in "123456789")
            case "zero":
                yield ".", state._replace(stage="point")
            case "whole":
                if state.place < self.significant:
                    yield from ((digit, self._whole(state, digit)) for digit in "0123456789")
                    yield ".", self._behind_whole(state)._replace(stage="point")
            case _:
                if state.significant < self.significant:
                    yield from ((digit, self._fraction(state, digit)) for digit in "123456789")
                    if state.significant or state.place < LEADING_ZEROS:
                        yield "0", self._fraction(state, "0")

    def accepts(self, state: PlainState) -> bool:
        """Return whether a number between the bounds ends here."""
        if state.stage not in ("whole", "zero", "fraction"):
            return False
        if self.is_fractional and not state.has_fraction:
            return False
        if state.stage == "whole":
            state = self._behind_whole(state)
        low = final_order(state.low, self.low.fraction, state.place)
        return low >= 0 >= final_order(state.high, self.high.fraction, state.place)

    def _whole(self, state: PlainState, digit: str) -> PlainState:
        place = state.place
        return PlainState(
            "whole",
            next_order(state.low, self.low.whole, place, digit),
            next_order(state.high, self.high.whole, place, digit),
            place + 1,
            place + 1,
        )

    def _behind_whole(self, state: PlainState) -> PlainState:
        """Return the state behind the whole part, whose length decides first."""
        low = order_by_length(state.low, state.place, len(self.low.whole))
        high = order_by_length(state.high, state.place, len(self.high.whole))
        return state._replace(low=low, high=high, place=0)

    def _fraction(self, state: PlainState, digit: str) -> PlainState:
        started = state.significant > 0 or digit != "0"
        low = next_order(state.low, self.low.fraction, state.place, digit)
        high = next_order(state.high, self.high.fraction, state.place, digit)
        open_places = not (low and high) or not started
        return PlainState(
            "fraction",
            low,
            high,
            state.place + 1 if open_places else 0,
            state.significant + started,
            state.has_fraction or digit != "0",
        )
