"""The dialects of JSON Schema: which keywords each one knows, and how to tell them apart.

A keyword of another dialect is never ignored: what one dialect asserts and the declared one does
not know is refused at its place, because its author expects it to be enforced.
"""

from __future__ import annotations

from dataclasses import dataclass

from ninfer.contract.errors import InvalidSchema, UnsupportedSchema
from ninfer.contract.location import JsonPointer
from ninfer.text.json_source import JsonValue

_SHARED = frozenset(
    "type enum properties patternProperties additionalProperties required items minItems maxItems "
    "uniqueItems minLength maxLength pattern format minimum maximum exclusiveMinimum "
    "exclusiveMaximum multipleOf minProperties maxProperties allOf anyOf oneOf not $ref "
    "definitions $schema $defs".split()
)
_DRAFT_04 = _SHARED | {"id", "dependencies", "additionalItems"}
_DRAFT_06 = (_DRAFT_04 - {"id"}) | {"$id", "const", "contains", "propertyNames"}
_DRAFT_07 = _DRAFT_06 | {"if", "then", "else"}
_2019_09 = _DRAFT_07 - {"dependencies"} | frozenset(
    "$anchor dependentRequired dependentSchemas minContains maxContains unevaluatedItems "
    "unevaluatedProperties $recursiveRef $recursiveAnchor $vocabulary".split()
)
_2020_12 = _2019_09 - {"additionalItems", "$recursiveRef", "$recursiveAnchor"} | {
    "prefixItems",
    "$dynamicRef",
    "$dynamicAnchor",
}


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one version of the standard says where the versions differ."""

    name: str
    keywords: frozenset[str]
    has_ref_siblings: bool = False
    has_boolean_exclusives: bool = False
    has_item_lists: bool = True

    @property
    def identity(self) -> str:
        """Return the keyword that names a schema resource."""
        return "id" if "id" in self.keywords else "$id"


DRAFT_04 = Dialect("draft-04", _DRAFT_04, has_boolean_exclusives=True)
DRAFT_06 = Dialect("draft-06", _DRAFT_06)
DRAFT_07 = Dialect("draft-07", _DRAFT_07)
DRAFT_2019_09 = Dialect("2019-09", _2019_09, has_ref_siblings=True)
DRAFT_2020_12 = Dialect("2020-12", _2020_12, has_ref_siblings=True, has_item_lists=False)

ASSERTIONS = frozenset().union(
    *(d.keywords for d in (DRAFT_04, DRAFT_06, DRAFT_07, DRAFT_2019_09, DRAFT_2020_12))
) - {"id"}
"""Every keyword that some dialect gives a meaning beyond description."""

_BY_NAME = {
    "json-schema.org/draft-04/schema": DRAFT_04,
    "json-schema.org/draft-06/schema": DRAFT_06,
    "json-schema.org/draft-07/schema": DRAFT_07,
    "json-schema.org/draft/2019-09/schema": DRAFT_2019_09,
    "json-schema.org/draft/2020-12/schema": DRAFT_2020_12,
}


def dialect_of(document: JsonValue) -> Dialect:
    """Return the dialect that a document declares, 2020-12 without a declaration.

    Raises: InvalidSchema — ``$schema`` is no string; UnsupportedSchema — an unknown dialect.
    """
    if not isinstance(document, dict) or "$schema" not in document:
        return DRAFT_2020_12
    place = JsonPointer(("$schema",))
    name = document["$schema"]
    if not isinstance(name, str):
        raise InvalidSchema("$schema is no string", location=place)
    _, separator, rest = name.partition("://")
    found = _BY_NAME.get(rest.removesuffix("#")) if separator else None
    if found is None or not name.startswith(("http://", "https://")):
        raise UnsupportedSchema(
            f"the dialect {name!r} is not supported", keyword="$schema", location=place
        )
    return found
