"""Which keywords hold what: values with their readers, one schema, lists, or schemas by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ninfer.contract.location import JsonPointer
from ninfer.text.json_source import JsonValue
from ninfer.text.schema import payloads

VALUES: dict[str, Callable[[JsonValue, JsonPointer], Any]] = {
    "type": payloads.types,
    "required": payloads.names,
    "enum": payloads.values,
    "const": payloads.anything,
    "pattern": payloads.text,
    "format": payloads.text,
    "$ref": payloads.text,
    "$anchor": payloads.text,
    "$dynamicAnchor": payloads.text,
    "minimum": payloads.bound,
    "maximum": payloads.bound,
    "exclusiveMinimum": payloads.bound,
    "exclusiveMaximum": payloads.bound,
    "multipleOf": payloads.divisor,
    "uniqueItems": payloads.flag,
    **dict.fromkeys(
        "minLength maxLength minItems maxItems minProperties maxProperties minContains "
        "maxContains".split(),
        payloads.count,
    ),
}
"""Readers of the keywords that hold values."""

ONE = frozenset(
    "additionalProperties additionalItems propertyNames not if then else contains".split()
)
"""Keywords that hold one schema."""

LIST = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
"""Keywords that hold a list of schemas."""

NAMED = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
"""Keywords that hold schemas by name."""

OUTSIDE = frozenset(
    "unevaluatedItems unevaluatedProperties $dynamicRef $recursiveRef $recursiveAnchor "
    "$vocabulary".split()
)
"""Keywords of some dialect that are never supported."""

CONTAINERS = frozenset({"$defs", "definitions", "$schema", "$anchor", "$dynamicAnchor"})
"""Keywords that say nothing about values."""
