"""What a failed command says, and with which status it exits.

Every failure is one line, ``error: PLACE: FACT``, where the place starts with the option the user
typed. Knows which flag carries which request option.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ninfer.contract import (
    CONSTRAINT_ERRORS,
    ConflictingOptions,
    DrafterError,
    ModelError,
    NInferError,
    OptionPath,
    RequestError,
)

STATUS_FAILED = 1
STATUS_BAD_INPUT = 2
STATUS_INTERRUPTED = 130

_FLAGS = {
    "constraint": "constraint",
    "temperature": "--temperature",
    "top_p": "--top-p",
    "top_k": "--top-k",
    "min_p": "--min-p",
    "presence_penalty": "--presence-penalty",
    "frequency_penalty": "--frequency-penalty",
    "seed": "--seed",
    "execution.requested_output_tokens": "--max-new",
    "max_context": "--max-context",
    "kv_tokens": "--kv-capacity",
    "prefill_chunk": "--prefill-chunk",
    "compute_threads": "--threads",
    "draft_tokens": "--draft-tokens",
    "execution.thinking.budget_tokens": "--thinking-budget",
    "prompt.enable_thinking": "--no-thinking",
    "prompt.reasoning_effort": "--reasoning-effort",
    "output.raw": "--raw-output",
    "stop.strings": "--stop",
    "stop.token_ids": "--stop-token-id",
    "prompt": "--prompt",
    "prompt.messages": "--prompt",
}


def option_error(error: ValueError) -> InputError:
    """Return the refusal of an engine option, with the flag that gave it; ``name: fact`` is known.

    Other texts keep their words, and the place says that it is about the engine's options.
    """
    name, separator, fact = str(error).partition(": ")
    if separator and name in _FLAGS:
        return InputError(_FLAGS[name], fact)
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


def describe(error: Exception, constraint_flag: str | None) -> Failure:
    """Return what to tell the user; ``constraint_flag`` is the flag that gave the constraint."""
    if isinstance(error, InputError):
        return Failure(error.place, error.fact, error.code, STATUS_BAD_INPUT)
    if isinstance(error, ConflictingOptions):
        first, second = (_flag(name, constraint_flag) for name in error.options)
        fact = error.fact.removeprefix(f"{' and '.join(error.options)}: ")
        return Failure(f"{first} and {second}", fact, error.code, STATUS_BAD_INPUT)
    if isinstance(error, RequestError):
        return Failure(_place(error, constraint_flag), error.fact, error.code, STATUS_BAD_INPUT)
    if isinstance(error, ModelError):
        flag = "--draft-model" if isinstance(error, DrafterError) else "--model"
        return Failure(flag, str(error), error.code, STATUS_BAD_INPUT)
    if isinstance(error, NInferError):
        return Failure("", str(error), error.code, STATUS_FAILED)
    return Failure(type(error).__name__, str(error), "internal_error", STATUS_FAILED)


def _place(error: RequestError, constraint_flag: str | None) -> str:
    location = error.location
    if isinstance(location, OptionPath):
        if isinstance(error, CONSTRAINT_ERRORS) and constraint_flag:
            return str(OptionPath(constraint_flag, location.index))
        return str(OptionPath(_flag(location.name, constraint_flag), location.index))
    place = "" if location is None else str(location)
    is_about_constraint = isinstance(error, CONSTRAINT_ERRORS) or location is not None
    if is_about_constraint and constraint_flag and error.origin.tool is None:
        return f"{constraint_flag}: {place}" if place else constraint_flag
    return place


def _flag(name: str, constraint_flag: str | None) -> str:
    if name == "constraint" and constraint_flag:
        return constraint_flag
    return _FLAGS.get(name, name)
