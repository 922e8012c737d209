"""Strict parameters: a tool's schema as named values in declared order.

The closed forms of ``ninfer.text.schema`` decide how each value is written and which texts it has;
the grammar and the parser both come from this one result.
Source: specification 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b

from ninfer.contract import (
    ConstraintKind,
    JsonPointer,
    Origin,
    RequestError,
    ToolDeclaration,
    UnsatisfiableConstraint,
    UnsupportedSchema,
)
from ninfer.qwen_frontend.raw_text import RAW_RULES, raw_value, unrepresentable
from ninfer.qwen_frontend.strict_root import object_of, place_of
from ninfer.qwen_frontend.tool_framing import PARAMETER_ENDING, PARAMETER_OPENING, TAG_END
from ninfer.qwen_frontend.tool_values import VALUE_CLOSING, Encoding
from ninfer.text.automata.limits import AutomatonLimit
from ninfer.text.emitter import emit
from ninfer.text.grammar import NOTHING, Grammar, Literal, Node, concatenation, optional
from ninfer.text.productive import without_dead_branches
from ninfer.text.schema.emission import Emission
from ninfer.text.schema.formula import FALSE, Formula
from ninfer.text.schema.reduction import Reduction
from ninfer.text.schema.shapes import Field, Value
from ninfer.text.schema.source import read_schema
from ninfer.text.schema.spelling import SPACED

_NO_PARAMETERS = '{"type":"object","properties":{},"additionalProperties":false}'


@dataclass(frozen=True, slots=True)
class StrictParameter:
    """One parameter: whether it must be given, and how it is written."""

    name: str
    is_required: bool
    encoding: Encoding


@dataclass(frozen=True, slots=True)
class StrictParameters:
    """The parameters of one strict tool, and the language of all of them with their framing.

    ``identity`` is the language's own: schemas that differ in annotations only have the same.
    """

    parameters: tuple[StrictParameter, ...]
    arguments: Grammar
    identity: str

    def encoding_of(self, name: str) -> Encoding | None:
        """Return how a parameter is written, or None where it is not declared."""
        return next((p.encoding for p in self.parameters if p.name == name), None)


def strict_parameters(declaration: ToolDeclaration) -> StrictParameters:
    """Return the strict parameters of a declaration.

    Raises: InvalidSchema, UnsupportedSchema, UnsatisfiableConstraint — with the tool as origin and
            the pointer in its parameter schema.
    """
    source = declaration.parameters_json or _NO_PARAMETERS
    try:
        return _Reading(Reduction(read_schema(source))).parameters()
    except RequestError as error:
        error.origin = Origin(declaration.name)
        raise
    except AutomatonLimit as limit:
        raise UnsupportedSchema(
            f"needs {limit}",
            keyword=limit.name.replace(" ", "_"),
            location=JsonPointer(),
            origin=Origin(declaration.name),
        ) from limit


class _Reading:
    """One reduction on its way to parameters."""

    def __init__(self, reduction: Reduction) -> None:
        self._reduction = reduction
        self._emission = Emission(reduction, SPACED)

    def parameters(self) -> StrictParameters:
        shape = object_of(self._reduction)
        found = list(self._fields(shape.fields.items()))
        entry = concatenation(*(node for _, node in found))
        rules = {**self._emission.finish(), **RAW_RULES}
        arguments = without_dead_branches(Grammar(entry, rules))
        if arguments.entry == NOTHING:
            raise UnsatisfiableConstraint(
                "no parameters satisfy the schema",
                kind=ConstraintKind.JSON_SCHEMA,
                location=JsonPointer(),
            )
        return StrictParameters(tuple(p for p, _ in found), arguments, _digest(arguments))

    def _fields(
        self, fields: Iterable[tuple[str, Field]]
    ) -> Iterator[tuple[StrictParameter, Node]]:
        for name, member in fields:
            if member.formula is FALSE and not member.required:
                continue
            encoding, value = self._value(name, member.formula)
            opening = Literal(PARAMETER_OPENING + name + TAG_END)
            written = concatenation(opening, value, Literal(PARAMETER_ENDING))
            node = written if member.required else optional(written)
            yield StrictParameter(name, member.required, encoding), node

    def _value(self, name: str, formula: Formula) -> tuple[Encoding, Node]:
        """Return how a value is written, and its texts up to and with the closing."""
        value = self._reduction.reduce(formula)
        if not value.strings:
            node = self._emission.value(formula)
            return Encoding.JSON, concatenation(node, Literal(VALUE_CLOSING))
        if not _is_string_only(value):
            raise UnsupportedSchema(
                "a string beside other types cannot be told apart in a parameter",
                keyword="type",
                location=place_of(formula, name),
            )
        if (text := unrepresentable(value.strings)) is not None:
            raise UnsupportedSchema(
                f"{text!r} holds the end of a parameter and cannot be written",
                keyword=_listing_keyword(formula),
                location=_listing_place(formula, name, text),
            )
        return Encoding.RAW, raw_value(value.strings, self._reduction.oracle)


def _digest(language: Grammar) -> str:
    return blake2b(emit(language).encode(), digest_size=32).hexdigest()


def _is_string_only(value: Value) -> bool:
    others = (value.null, value.booleans, value.numbers, value.arrays, value.objects)
    return not any(others)


def _listing_keyword(formula: Formula) -> str:
    schema = formula.schema
    return "const" if schema is not None and "const" in schema.keywords else "enum"


def _listing_place(formula: Formula, name: str, text: str) -> JsonPointer:
    place = place_of(formula, name)
    keywords = {} if formula.schema is None else formula.schema.keywords
    if keywords.get("const") == text:
        return place / "const"
    if text in keywords.get("enum", ()):
        index: int = keywords["enum"].index(text)
        return place / "enum" / index
    return place
