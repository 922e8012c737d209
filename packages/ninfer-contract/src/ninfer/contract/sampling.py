"""Sampling parameters, their ranges, and the purposes that key the counter RNG.

Source: specification 7.3 and 7.4; reference contract section 2.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from numbers import Integral, Real

from ninfer.contract.errors import InvalidOption
from ninfer.contract.location import OptionPath

TOP_K_LIMIT = 20
"""Candidates that survive at most; 0 and everything above mean this number."""


class RngPurpose(IntEnum):
    """What a random number is drawn for; part of its key."""

    PREFILL = 0
    DECODE = 1
    SPECULATIVE_ACCEPT = 2
    SPECULATIVE_CORRECTION = 3
    SPECULATIVE_BONUS = 4
    DFLASH2_PROPOSAL = 5


@dataclass(frozen=True, slots=True)
class SamplingParameters:
    """The resolved parameters of one request.

    Math:   z' = z − presence·[count>0] − frequency·count over committed generated tokens; the mask
            and then top-k (≤ 20, ties to the lower id) choose C; w = exp(z'/T − max_C z'/T); the
            suffix with w < min_p·w₀ is dropped; the shortest prefix whose mass reaches
            top_p · (mass of C before min-p) stays; the rest is renormalised and drawn by inverse
            CDF. T ≤ 0 takes the largest z', ties to the lower id, and draws nothing.
    Raises: InvalidOption — a value is no number, not finite or out of range.
    """

    temperature: float = 0.7
    top_p: float = 0.8
    top_k: int = 20
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        _require_range("temperature", self.temperature, 0.0, 2.0)
        _require_range("top_p", self.top_p, 0.0, 1.0)
        _require_range("min_p", self.min_p, 0.0, 1.0)
        _require_range("presence_penalty", self.presence_penalty, -2.0, 2.0)
        _require_range("frequency_penalty", self.frequency_penalty, -2.0, 2.0)
        _require_integer("top_k", self.top_k)
        _require_integer("seed", self.seed)
        if self.top_k < 0:
            raise InvalidOption(f"{self.top_k} is negative", location=OptionPath("top_k"))
        if not 0 <= self.seed < 1 << 64:
            raise InvalidOption("not an unsigned 64-bit integer", location=OptionPath("seed"))

    @property
    def is_greedy(self) -> bool:
        """Return whether the largest adjusted logit is taken without a draw."""
        return self.temperature <= 0.0

    @property
    def candidate_limit(self) -> int:
        """Return how many candidates top-k keeps, 1 to 20."""
        return self.top_k if 1 <= self.top_k <= TOP_K_LIMIT else TOP_K_LIMIT


@dataclass(frozen=True, slots=True)
class SamplingOverrides:
    """What a caller sets; None leaves the preset's value."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None

    def resolve(self, preset: SamplingParameters) -> SamplingParameters:
        """Return the preset with every set field replaced.

        Raises: InvalidOption — a value is not finite or out of range.
        """
        chosen = {f.name: getattr(self, f.name) for f in fields(self)}
        merged = {f.name: getattr(preset, f.name) for f in fields(preset)}
        return SamplingParameters(**merged | {k: v for k, v in chosen.items() if v is not None})


def _require_range(name: str, value: float, low: float, high: float) -> None:
    if not isinstance(value, Real):
        raise InvalidOption(f"{value!r} is no number", location=OptionPath(name))
    if not low <= value <= high:  # false of what is not a number, too
        raise InvalidOption(f"{value} is not in [{low:g}, {high:g}]", location=OptionPath(name))


def _require_integer(name: str, value: int) -> None:
    if not isinstance(value, Integral):
        raise InvalidOption(f"{value!r} is no integer", location=OptionPath(name))


THINKING_PRESET = SamplingParameters(temperature=1.0, top_p=0.95)
DIRECT_PRESET = SamplingParameters(temperature=0.7, top_p=0.8, presence_penalty=1.5)
GREEDY_PRESET = SamplingParameters(temperature=0.0)


def preset_for(*, thinking: bool, structured: bool) -> SamplingParameters:
    """Return the defaults of a request.

    A request with a constraint or tools starts with presence penalty 0, because the direct
    preset's 1.5 punishes the punctuation and keys that JSON repeats.
    """
    if thinking:
        return THINKING_PRESET
    if structured:
        return SamplingParameters(temperature=0.7, top_p=0.8)
    return DIRECT_PRESET
