"""Plain parameters: what a declared type says about a value's text.

Hints never refuse and never limit a language; they only choose how a text becomes JSON.
Source: reference contract section 4, "free-route value normalisation".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ninfer.qwen_frontend.tool_values import json_string, read_json_value


class Normalised(NamedTuple):
    """A value's JSON text, None where it is left out, and whether its type is another one."""

    json_text: str | None
    is_mismatch: bool = False


@dataclass(frozen=True, slots=True)
class ParameterHints:
    """The declared types of each parameter; a name without types is undeclared."""

    types: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def normalise(self, name: str, text: str) -> Normalised:
        """Return the JSON of one value; ``text`` is without its framing line breaks.

        Math: string admitted → the text as a string; empty otherwise → left out; JSON of a declared
              type → itself, of another → itself, counted; ``true``/``false`` in any case →
              a boolean where one is declared; other text → a string, counted. Undeclared: JSON if
              it is JSON, else a string, both trimmed.
        """
        types = self.types.get(name)
        if types is not None and "string" in types:
            return Normalised(json_string(text))
        text = text.strip()
        if types is None:
            is_json = read_json_value(text) is not None
            return Normalised(text if is_json else json_string(text))
        if not text:
            return Normalised(None)
        if "boolean" in types and text.lower() in ("true", "false"):
            return Normalised(text.lower())
        read = read_json_value(text)
        if read is None:
            return Normalised(json_string(text), is_mismatch=True)
        admitted = {read.type_name, "number"} if read.type_name == "integer" else {read.type_name}
        return Normalised(text, is_mismatch=admitted.isdisjoint(types))


def read_hints(parameters_json: str | None) -> ParameterHints:
    """Return the hints of a parameter schema; what cannot be read gives none."""
    try:
        schema = json.loads(parameters_json or "{}")
    except (ValueError, RecursionError):
        return ParameterHints()
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return ParameterHints()
    found = {name: frozenset(_types(body)) for name, body in properties.items()}
    return ParameterHints({name: types for name, types in found.items() if types})


def _types(schema: Any) -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    declared = schema.get("type")
    if isinstance(declared, str):
        yield declared
    elif isinstance(declared, list):
        yield from (name for name in declared if isinstance(name, str))
    else:
        for word in ("anyOf", "oneOf"):
            branches = schema.get(word)
            for branch in branches if isinstance(branches, list) else ():
                yield from _types(branch)
