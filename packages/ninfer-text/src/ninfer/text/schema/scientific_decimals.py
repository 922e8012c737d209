"""The spellings ``1.234e-5`` of the magnitudes between two bounds: one digit before the point."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from ninfer.text.automata.dfa import NOTHING, Dfa
from ninfer.text.automata.expression import Either, Expression, Repeat, Then, word
from ninfer.text.automata.subset import compile_expression
from ninfer.text.schema.magnitudes import Magnitude, Order, final_order, next_order
from ninfer.text.schema.plain_decimals import SIGNIFICANT
from ninfer.text.schema.whole_numbers import interval_expression

LEAST_EXPONENT = -324
"""That of the least binary64. What reads as 0 lies between bounds only where 0 does."""
GREATEST_EXPONENT = 308


class ScientificState(NamedTuple):
    """What was read: the stage, both orders, mantissa digits; behind ``e`` an exponent's state."""

    stage: str
    low: Order = 0
    high: Order = 0
    place: int = 0
    exponents: Dfa = NOTHING
    inner: int = 0


@dataclass(frozen=True, slots=True)
class ScientificDecimals:
    """A machine for one sign; the upper bound is finite."""

    sign: str
    low: Magnitude
    high: Magnitude

    @property
    def start(self) -> ScientificState:
        """Return the first state."""
        return ScientificState("sign" if self.sign else "first")

    def steps(self, state: ScientificState) -> Iterator[tuple[str, ScientificState]]:
        """Yield what a state reads."""
        match state.stage:
            case "sign":
                yield self.sign, ScientificState("first")
            case "first":
                yield from ((digit, self._digit(state, digit)) for digit in "123456789")
            case "e":
                yield from self._exponent(state)
            case _:
                yield from self._mantissa(state)

    def accepts(self, state: ScientificState) -> bool:
        """Return whether a number between the bounds ends here."""
        return state.stage == "e" and bool(state.exponents.accepting[state.inner])

    def _digit(self, state: ScientificState, digit: str) -> ScientificState:
        low = next_order(state.low, self.low.mantissa, state.place, digit)
        high = next_order(state.high, self.high.mantissa, state.place, digit)
        return ScientificState("digits", low, high, state.place + 1)

    def _mantissa(self, state: ScientificState) -> Iterator[tuple[str, ScientificState]]:
        if state.stage == "digits" and state.place == 1:
            yield ".", state._replace(stage="point")
        elif state.place < SIGNIFICANT:
            yield from ((digit, self._digit(state, digit)) for digit in "0123456789")
        if state.stage == "digits":
            exponents = self._exponents(state)
            yield "e", ScientificState("e", exponents=exponents)
            yield "E", ScientificState("e", exponents=exponents)

    def _exponents(self, state: ScientificState) -> Dfa:
        least, greatest = LEAST_EXPONENT, self.high.exponent
        if self.low.mantissa:
            below = final_order(state.low, self.low.mantissa, state.place) < 0
            least = max(least, self.low.exponent + below)
        above = final_order(state.high, self.high.mantissa, state.place) > 0
        return exponent_automaton(least, min(greatest - above, GREATEST_EXPONENT))

    def _exponent(self, state: ScientificState) -> Iterator[tuple[str, ScientificState]]:
        for low, high, target in state.exponents.edges[state.inner]:
            for character in range(low, high + 1):
                yield chr(character), state._replace(inner=target)


@lru_cache(maxsize=256)
def exponent_automaton(least: int, greatest: int) -> Dfa:
    """Return the exponents of an interval: signed or not, at most one leading zero."""
    options: list[Expression] = []
    zero = Repeat(word("0"), 0, 1)
    if least < 0 <= greatest or least <= greatest < 0:
        negative = interval_expression(max(-greatest, 0), -least)
        options.append(Then((word("-"), zero, negative)))
    if greatest >= 0 and least <= greatest:
        plus = Repeat(word("+"), 0, 1)
        options.append(Then((plus, zero, interval_expression(max(least, 0), greatest))))
    return compile_expression(Either(tuple(options)))
