"""What a failed command says, and with which status it exits.

Every failure is one line, ``error: PLACE: FACT``, where the place starts with the option the user
typed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ninfer.cli.places import FLAGS, Places
from ninfer.contract import (
    ConflictingOptions,
    DrafterError,
    ModelError,
    NInferError,
    RequestError,
)

STATUS_FAILED = 1
STATUS_BAD_INPUT = 2
STATUS_INTERRUPTED = 130


def option_error(error: ValueError) -> InputError:
    """Return the refusal of an engine option, with the flag that gave it; ``name: fact`` is known.

    Other texts keep their words, and the place says that it is about the engine's options.
    """
    name, separator, fact = str(error).partition(": ")
    if separator and name in FLAGS:
        return InputError(FLAGS[name], fact)
    return InputError("engine options", str(error))


class InputError(Exception):
    """A flag or file that cannot be used; found before any model is touched."""

    def __init__(self, place: str, fact: str, code: str = "invalid_option") -> None:
        super().__init__(f"{place}: {fact}")
        self.place = place
        self.fact = fact
        self.code = code


@dataclass(frozen=True, slots=True)
class Failure:
    """One failure as the user reads it."""

    place: str
    fact: str
    code: str
    status: int

    @property
    def line(self) -> str:
        """Return the line for stderr."""
        return f"error: {self.place}: {self.fact}" if self.place else f"error: {self.fact}"

    def record(self) -> dict[str, Any]:
        """Return the machine-readable form that ``--json`` prints."""
        return {"error": {"code": self.code, "place": self.place, "message": self.fact}}


def describe(error: Exception, places: Places) -> Failure:
    """Return what to tell the user; ``places`` says what the user typed where."""
    if isinstance(error, InputError):
        return Failure(error.place, error.fact, error.code, STATUS_BAD_INPUT)
    if isinstance(error, ConflictingOptions):
        first, second = (places.flag(name) for name in error.options)
        fact = error.fact.removeprefix(f"{' and '.join(error.options)}: ")
        return Failure(f"{first} and {second}", fact, error.code, STATUS_BAD_INPUT)
    if isinstance(error, RequestError):
        return Failure(places.of(error), error.fact, error.code, STATUS_BAD_INPUT)
    if isinstance(error, ModelError):
        flag = "--draft-model" if isinstance(error, DrafterError) else "--model"
        return Failure(flag, str(error), error.code, STATUS_BAD_INPUT)
    if isinstance(error, NInferError):
        return Failure("", str(error), error.code, STATUS_FAILED)
    return Failure(type(error).__name__, str(error), "internal_error", STATUS_FAILED)
