"""Typed access to a JSON configuration; every refusal says where it stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from ninfer.contract import ModelError

T = TypeVar("T", bool, int, float, str)


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

    def get(self, name: str, kind: type[T], default: T) -> T:
        """Return a field, or the default where it is missing or null."""
        return self.require(name, kind) if self.has(name) else default

    def require(self, name: str, kind: type[T]) -> T:
        """Return a field.

        Raises: ModelError — it is missing or of another type.
        """
        value = self._values.get(name)
        if value is None:
            raise self.fail(name, "is missing")
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.fail(name, f"is {type(value).__name__}, not {kind.__name__}")
        return value

    def numbers(self, name: str) -> tuple[float, ...]:
        """Return a list of numbers.

        Raises: ModelError — it is anything else.
        """
        value = self._values.get(name)
        if not isinstance(value, list) or not all(isinstance(v, int | float) for v in value):
            raise self.fail(name, "is not a list of numbers")
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
