"""A validated document: typed schema objects, and what every reference names."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ninfer.contract.location import JsonPointer
from ninfer.text.schema.dialect import Dialect


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """One schema: what its assertions hold, typed; sub-schemas are Schema objects.

    ``pointer`` is its first place in the source. A boolean schema has ``truth`` and no keywords.
    """

    pointer: JsonPointer
    keywords: dict[str, Any] = field(default_factory=dict)
    truth: bool | None = None

    def place(self, keyword: str) -> JsonPointer:
        """Return where a keyword of this schema stands."""
        return self.pointer / keyword


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """A validated source: its root schema, its dialect and the target of every reference."""

    root: Schema
    dialect: Dialect
    targets: MappingProxyType[tuple[str, str], Schema]
    strings: MappingProxyType[str, JsonPointer]
    """Where patterns and formats stand first, by their text."""

    def target(self, schema: Schema) -> Schema:
        """Return what a schema's ``$ref`` names."""
        return self.targets[schema.keywords["$ref"]]
