"""Typed access to a JSON configuration; every refusal says where it stands."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeVar

from ninfer.contract import ModelError

T = TypeVar("T", bool, int, float, str)
N = TypeVar("N", int, float)

_INTEGER_BOUND = 1 << 31
"""No size, count or id of a model reaches this; what does would overflow where it is computed."""


class ConfigFields:
    """A JSON object whose errors say where it stands."""

    def __init__(self, values: Mapping[str, object], place: str) -> None:
        self._values = values
        self._place = place

    def fail(self, name: str, fact: str) -> ModelError:
        """Return the error of one field, for the caller to raise."""
        return ModelError(f"{self._place}: {name}: {fact}")

    def has(self, name: str) -> bool:
        """Return whether a field is there and not null."""
        return self._values.get(name) is not None

    def are_same(self, first: str, second: str) -> bool:
        """Return whether two fields agree: the same value, or at most one of them there."""
        values = (self._values.get(first), self._values.get(second))
        return None in values or values[0] == values[1]

    def get(self, name: str, kind: type[T], default: T) -> T:
        """Return a field, or the default where it is missing or null."""
        return self.require(name, kind) if self.has(name) else default

    def require(self, name: str, kind: type[T]) -> T:
        """Return a field.

        Raises: ModelError — it is missing, of another type, or a number that is not finite or
                beyond all sizes.
        """
        value = self._values.get(name)
        if value is None:
            raise self.fail(name, "is missing")
        if isinstance(value, int | float) and not isinstance(value, bool):
            self._check_range(name, value)
            value = float(value) if kind is float else value
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.fail(name, f"is {type(value).__name__}, not {kind.__name__}")
        return value

    def positive(self, name: str, kind: type[N]) -> N:
        """Return a number above 0.

        Raises: ModelError — it is missing or anything else.
        """
        value = self.require(name, kind)
        if value <= 0:
            raise self.fail(name, f"{value} is not positive")
        return value

    def get_positive(self, name: str, kind: type[N], default: N) -> N:
        """Return a number above 0, or the default where it is missing or null.

        Raises: ModelError — it is anything else.
        """
        return self.positive(name, kind) if self.has(name) else default

    def numbers(self, name: str) -> tuple[float, ...]:
        """Return a list of numbers.

        Raises: ModelError — it is anything else.
        """
        value = self._values.get(name)
        if not isinstance(value, list) or not all(
            isinstance(v, int | float) and not isinstance(v, bool) for v in value
        ):
            raise self.fail(name, "is not a list of numbers")
        for number in value:
            self._check_range(name, number)
        return tuple(float(v) for v in value)

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of strings.

        Raises: ModelError — it is anything else.
        """
        value = self._values.get(name)
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise self.fail(name, "is not a list of strings")
        return tuple(value)

    def allow(self, name: str, served: tuple[object, ...]) -> None:
        """Check that a field is absent or one of some values.

        Raises: ModelError — it is another value.
        """
        if self.has(name) and self._values[name] not in served:
            names = ", ".join(repr(v) for v in served)
            raise self.fail(name, f"{self._values[name]!r} is not served (served: {names})")

    def nested(self, name: str) -> ConfigFields:
        """Return an object inside this one; an absent one is empty.

        Raises: ModelError — it is not an object.
        """
        value = self._values.get(name)
        if value is None:
            value = {}
        if not isinstance(value, Mapping):
            raise self.fail(name, "is not an object")
        return ConfigFields(value, f"{self._place}: {name}")

    def _check_range(self, name: str, value: float) -> None:
        if isinstance(value, int):
            if abs(value) >= _INTEGER_BOUND:
                raise self.fail(name, f"has {value.bit_length()} bits, which no model's numbers do")
        elif not math.isfinite(value):
            raise self.fail(name, f"{value} is not a finite number")
