"""The one content constraint of a request, from whichever field holds it.

A schema stays the source text the client sent: order of properties and spelling of numbers are
part of its meaning.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from ninfer.contract import OutputConstraint
from ninfer.gateway.failure import WireError
from ninfer.gateway.wire import raw_text


class StructuredOutputs(msgspec.Struct, forbid_unknown_fields=True):
    """The NInfer extension: a language without a standard protocol field; exactly one kind."""

    grammar: str | None = None
    regex: str | None = None
    choice: list[str] | None = None


class NamedSchema(msgspec.Struct):
    """The ``json_schema`` object of a response format; ``strict`` changes nothing here."""

    schema: msgspec.Raw
    name: str | None = None
    description: str | None = None
    strict: bool | None = None


class ResponseFormat(msgspec.Struct):
    """OpenAI Chat's ``response_format``."""

    type: str
    json_schema: NamedSchema | None = None


class FieldConstraint(NamedTuple):
    """A constraint and the request field that its error pointers continue."""

    field: str
    constraint: OutputConstraint


def content_constraint(
    standard: FieldConstraint | None, extension: StructuredOutputs | None, standard_field: str
) -> FieldConstraint | None:
    """Return the one constraint of a request, or None.

    Raises: WireError — both sources are given, or the extension does not hold exactly one kind.
    """
    if extension is None:
        return standard
    if standard is not None:
        fact = f"{standard_field} and structured_outputs exclude each other"
        raise WireError(fact, param="structured_outputs", code="conflicting_options")
    kinds = {
        "grammar": extension.grammar is not None and OutputConstraint.grammar(extension.grammar),
        "regex": extension.regex is not None and OutputConstraint.regex(extension.regex),
        "choice": extension.choice is not None and OutputConstraint.choice(extension.choice),
    }
    given = [
        FieldConstraint(f"structured_outputs.{name}", constraint)
        for name, constraint in kinds.items()
        if constraint
    ]
    if len(given) != 1:
        fact = f"exactly one of grammar, regex and choice is required, {len(given)} are given"
        raise WireError(fact, param="structured_outputs", code="conflicting_options")
    return given[0]


def response_format_constraint(format: ResponseFormat | None) -> FieldConstraint | None:
    """Return the constraint of Chat's ``response_format``.

    Raises: WireError — the type is unknown, or a schema is missing.
    """
    if format is None or format.type == "text":
        return None
    if format.type == "json_object":
        return FieldConstraint("response_format", OutputConstraint.json_object())
    if format.type != "json_schema":
        fact = f"{format.type!r} is not one of text, json_object, json_schema"
        raise WireError(fact, param="response_format.type")
    text = raw_text(format.json_schema.schema) if format.json_schema else None
    if text is None:
        raise WireError(
            "a schema is required with type json_schema",
            param="response_format.json_schema",
            code="missing_field",
        )
    return FieldConstraint("response_format.json_schema.schema", OutputConstraint.json_schema(text))
