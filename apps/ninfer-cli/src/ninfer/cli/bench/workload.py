"""What the requests of a benchmark say and what they are held to.

Answers under a constraint end where the model ends them, so their lengths are measured, not set.
"""

from __future__ import annotations

import json
from enum import Enum
from itertools import cycle, islice
from typing import TYPE_CHECKING

from ninfer.cli.failure import InputError
from ninfer.contract import (
    ExecutionOptions,
    OutputConstraint,
    RequestOptions,
    SamplingOverrides,
    StopPolicy,
    TextPrompt,
    TokenPrompt,
)

if TYPE_CHECKING:
    from ninfer.runtime import Engine

_TEXT = (
    "The station stands at the edge of the town, where the river turns east. Every morning the"
    " first train leaves at ten minutes past six, and the baker opens his door a little earlier."
    " List what each traveller carries, where the journey ends, and how long it takes in minutes.\n"
)
_SCHEMA = json.dumps(
    {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "maxLength": 40},
                "age": {"type": "integer", "minimum": 0, "maximum": 120},
                "city": {"enum": ["Paris", "Berlin", "Lima", "Osaka"]},
                "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
            },
            "required": ["name", "age", "city"],
            "additionalProperties": False,
        },
    }
)
_REGEX = r"([A-Z][a-z]{1,12}( [a-z]{1,12}){2,10}\. )*"
_CHOICES = [
    f"The {kind} leaves the station at {hour} and arrives before the evening bell has rung."
    for kind in ("train", "coach", "ferry", "courier")
    for hour in ("six", "seven", "eight", "nine", "ten")
]


class ConstraintName(Enum):
    """What answers of a benchmark can be held to."""

    NONE = "none"
    JSON_OBJECT = "json_object"
    SCHEMA = "schema"
    REGEX = "regex"
    CHOICE = "choice"


def constraint_names(text: str) -> list[ConstraintName]:
    """Return the names of a comma-separated list, each once.

    Raises: InputError — a name is unknown, or there is none.
    """
    known = {name.value: name for name in ConstraintName}
    words = [word for word in (part.strip() for part in text.split(",")) if word]
    for word in words:
        if word not in known:
            raise InputError("--constraint", f"{word!r} is not one of {', '.join(known)}")
    if not words:
        raise InputError("--constraint", "no kind is named")
    return list(dict.fromkeys(known[word] for word in words))


def constraint_of(name: ConstraintName, schema: str | None = None) -> OutputConstraint | None:
    """Return the constraint under a name; ``schema`` replaces the built-in document."""
    match name:
        case ConstraintName.NONE:
            return None
        case ConstraintName.JSON_OBJECT:
            return OutputConstraint.json_object()
        case ConstraintName.SCHEMA:
            return OutputConstraint.json_schema(_SCHEMA if schema is None else schema)
        case ConstraintName.REGEX:
            return OutputConstraint.regex(_REGEX)
        case ConstraintName.CHOICE:
            return OutputConstraint.choice(_CHOICES)


def prompt_of(engine: Engine, tokens: int) -> TokenPrompt:
    """Return a prompt of exactly so many tokens of ordinary prose."""
    ids = engine.prepare(TextPrompt(_TEXT)).prompt.token_ids
    return TokenPrompt(tuple(islice(cycle(ids), tokens)))


def options_of(constraint: OutputConstraint | None, output_tokens: int) -> RequestOptions:
    """Return greedy options; a free answer does not end before its length."""
    return RequestOptions(
        constraint=constraint,
        execution=ExecutionOptions(
            sampling=SamplingOverrides(temperature=0.0, seed=0),
            requested_output_tokens=output_tokens,
            allow_prefix_reuse=False,
        ),
        stop=StopPolicy(include_model_defaults=constraint is not None),
        phase_timings=True,
    )
