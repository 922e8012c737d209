"""A JSON Schema document as typed, interned schema objects; nothing is combined yet.

Every position that the standard calls a schema is visited once; ``const`` and ``enum`` hold values
and are not. Schemas that say the same thing are one object, so that shared text is shared work.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NoReturn

from ninfer.contract.constraint import UnknownKeywords
from ninfer.contract.errors import InvalidRegex, InvalidSchema, UnsupportedSchema
from ninfer.contract.location import JsonPointer
from ninfer.text.json_source import JsonNumber, JsonValue, read_json
from ninfer.text.regex.parser import parse_regex
from ninfer.text.schema import payloads
from ninfer.text.schema.annotations import is_annotation, suggestion
from ninfer.text.schema.dialect import ASSERTIONS, Dialect, dialect_of
from ninfer.text.schema.document import Document, Schema
from ninfer.text.schema.formats import OUTSIDE_FORMATS, is_enforced_format
from ninfer.text.schema.keywords import CONTAINERS, LIST, NAMED, ONE, OUTSIDE, VALUES
from ninfer.text.schema.references import Identities

SCHEMA_LIMIT = 16_384
"""How many schemas one document may hold."""

SCHEMA_DEPTH_LIMIT = 128
"""How many schemas may stand inside each other."""

__all__ = ["Document", "Schema", "read_schema"]


def read_schema(source: str, unknown: UnknownKeywords = UnknownKeywords.REFUSE) -> Document:
    """Read and validate one document.

    Raises: InvalidSchema, UnsupportedSchema — with the JSON Pointer of the keyword, or line and
            column where the text is not JSON.
    """
    value = read_json(source)
    return _Reading(value, dialect_of(value), unknown).document()


@dataclass(slots=True)
class _Reading:
    """One pass over a document."""

    value: JsonValue
    dialect: Dialect
    unknown: UnknownKeywords
    identities: Identities = field(default_factory=Identities)
    interned: dict[Any, Schema] = field(default_factory=dict)
    located: dict[JsonPointer, Schema] = field(default_factory=dict)
    references: dict[tuple[str, str], JsonPointer] = field(default_factory=dict)
    strings: dict[str, JsonPointer] = field(default_factory=dict)
    depth: int = 0

    def document(self) -> Document:
        root = self.schema(self.value, JsonPointer(), "")
        targets: dict[tuple[str, str], Schema] = {}
        while pending := [key for key in self.references if key not in targets]:
            for key in pending:
                targets[key] = self.find(*key, place=self.references[key])
        return Document(
            root, self.dialect, MappingProxyType(targets), MappingProxyType(self.strings)
        )

    def find(self, base: str, reference: str, place: JsonPointer) -> Schema:
        target = self.identities.resolve(base, reference, place)
        if target in self.located:
            return self.located[target]
        value = self._at(target) if self.unknown is UnknownKeywords.ANNOTATE else None
        if not isinstance(value, (dict, bool)):
            raise InvalidSchema(f"{reference!r} names no schema", location=place)
        return self.schema(value, target, base)

    def _at(self, target: JsonPointer) -> JsonValue:
        value = self.value
        for token in target.tokens:
            if isinstance(value, dict):
                value = value.get(token)
            elif isinstance(value, list) and token.isdigit() and int(token) < len(value):
                value = value[int(token)]
            else:
                return None
        return value

    def schema(self, value: JsonValue, place: JsonPointer, base: str) -> Schema:
        if self.depth >= SCHEMA_DEPTH_LIMIT:
            self._refuse_limit("schema_depth", f"nests over {SCHEMA_DEPTH_LIMIT} schemas", place)
        if len(self.located) >= SCHEMA_LIMIT:
            self._refuse_limit("schemas", f"holds more than {SCHEMA_LIMIT} schemas", place)
        if isinstance(value, bool):
            schema = self.interned.setdefault(value, Schema(place, truth=value))
        elif isinstance(value, dict):
            self.depth += 1
            base = self._base(value, place, base)
            self._check_words(value, place)
            keywords, key = self._keywords(value, place, base)
            schema = self.interned.setdefault(key, Schema(place, keywords))
            self.depth -= 1
        else:
            raise InvalidSchema("is no schema", location=place)
        self.located[place] = schema
        return schema

    def _refuse_limit(self, name: str, fact: str, place: JsonPointer) -> NoReturn:
        raise UnsupportedSchema(fact, keyword=name, location=place)

    def _base(self, value: dict[str, JsonValue], place: JsonPointer, base: str) -> str:
        keyword = self.dialect.identity
        shadowed = "$ref" in value and not self.dialect.has_ref_siblings
        if keyword in value and not shadowed:
            identity = payloads.text(value[keyword], place / keyword)
            base = self.identities.declare(base, identity, place, keyword)
        for keyword in ("$anchor", "$dynamicAnchor"):
            if keyword in value and keyword in self.dialect.keywords:
                anchor = payloads.text(value[keyword], place / keyword)
                self.identities.name(base, anchor, place, keyword)
        return base

    def _check_words(self, value: dict[str, JsonValue], place: JsonPointer) -> None:
        for word in value:
            if word in OUTSIDE:
                raise UnsupportedSchema("is not supported", keyword=word, location=place / word)
            if word not in self.dialect.keywords and not is_annotation(word):
                self._refuse_word(word, place)
            if word in ("then", "else") and "if" not in value and word in self.dialect.keywords:
                raise UnsupportedSchema(
                    "is ignored without if", keyword=word, location=place / word
                )
        if "$ref" in value and not self.dialect.has_ref_siblings:
            self._check_siblings(value, place)

    def _refuse_word(self, word: str, place: JsonPointer) -> None:
        if word in ASSERTIONS:
            fact = f"is no keyword of {self.dialect.name}, which the document follows"
        elif self.unknown is UnknownKeywords.ANNOTATE:
            return
        else:
            near = suggestion(word)
            fact = "is no known keyword" + (f"; did you mean {near!r}?" if near else "")
        raise UnsupportedSchema(fact, keyword=word, location=place / word)

    def _check_siblings(self, value: dict[str, JsonValue], place: JsonPointer) -> None:
        for word in value:
            if word in ASSERTIONS and word not in CONTAINERS | {"$ref", self.dialect.identity}:
                raise UnsupportedSchema(
                    f"{self.dialect.name} ignores what stands beside $ref; use allOf",
                    keyword=word,
                    location=place / word,
                )

    def _keywords(
        self, value: dict[str, JsonValue], place: JsonPointer, base: str
    ) -> tuple[dict[str, Any], Any]:
        """Return the typed keywords and a key that equal schemas share."""
        typed: dict[str, Any] = {}
        keys: list[Any] = []
        for word, content in value.items():
            if word not in ASSERTIONS or word not in self.dialect.keywords:
                continue
            payload, key = self._payload(word, content, place / word, base)
            if word not in CONTAINERS and word != self.dialect.identity:
                typed[word] = payload
                keys.append((word, key))
        return typed, tuple(keys)

    def _payload(
        self, word: str, content: JsonValue, place: JsonPointer, base: str
    ) -> tuple[Any, Any]:
        if word in ONE:
            schema = self.schema(content, place, base)
            return schema, id(schema)
        if word in LIST:
            listed = self._list(content, place, base)
            return listed, tuple(map(id, listed))
        if word in NAMED:
            named = self._named(content, place, base)
            if word == "patternProperties":
                for pattern in named:
                    self._check_pattern(pattern, word, place / pattern)
            return named, tuple((name, id(s)) for name, s in named.items())
        match word:
            case "items":
                return self._items(content, place, base)
            case "dependencies":
                return self._dependencies(content, place, base)
            case "dependentRequired":
                lists = payloads.members(content, place)
                found = {k: payloads.names(v, place / k) for k, v in lists.items()}
                return found, tuple(found.items())
            case "exclusiveMinimum" | "exclusiveMaximum" if self.dialect.has_boolean_exclusives:
                exclusive = payloads.flag(content, place)
                return exclusive, exclusive
            case "$ref":
                return self._reference(payloads.text(content, place), place, base)
            case "pattern":
                self._check_pattern(payloads.text(content, place), "pattern", place)
            case "format":
                self._check_format(payloads.text(content, place), place)
            case "$schema" | "$id" | "id":
                return None, None
        payload = VALUES[word](content, place)
        return payload, _value_key(payload)

    def _check_pattern(self, pattern: str, keyword: str, place: JsonPointer) -> None:
        self.strings.setdefault(pattern, place)
        try:
            parse_regex(pattern)
        except InvalidRegex as error:
            raise UnsupportedSchema(
                f"{error.location}: {error.fact}", keyword=keyword, location=place
            ) from None

    def _check_format(self, name: str, place: JsonPointer) -> None:
        self.strings.setdefault(name, place)
        if is_enforced_format(name):
            return
        if self.unknown is UnknownKeywords.REFUSE or name in OUTSIDE_FORMATS:
            raise UnsupportedSchema(
                f"the format {name!r} is not supported", keyword="format", location=place
            )

    def _reference(self, reference: str, place: JsonPointer, base: str) -> tuple[Any, Any]:
        self.references.setdefault((base, reference), place)
        return (base, reference), (base, reference)

    def _list(self, content: JsonValue, place: JsonPointer, base: str) -> tuple[Schema, ...]:
        listed = payloads.branches(content, place)
        return tuple(self.schema(item, place / i, base) for i, item in enumerate(listed))

    def _named(self, content: JsonValue, place: JsonPointer, base: str) -> dict[str, Schema]:
        named = payloads.members(content, place)
        return {name: self.schema(item, place / name, base) for name, item in named.items()}

    def _items(self, content: JsonValue, place: JsonPointer, base: str) -> tuple[Any, Any]:
        if not isinstance(content, list):
            schema = self.schema(content, place, base)
            return schema, id(schema)
        if not self.dialect.has_item_lists:
            raise InvalidSchema("is no schema; positions stand in prefixItems", location=place)
        listed = tuple(self.schema(item, place / i, base) for i, item in enumerate(content))
        return listed, tuple(map(id, listed))

    def _dependencies(self, content: JsonValue, place: JsonPointer, base: str) -> tuple[Any, Any]:
        found: dict[str, Any] = {}
        for name, item in payloads.members(content, place).items():
            is_names = isinstance(item, list)
            at = place / name
            found[name] = payloads.names(item, at) if is_names else self.schema(item, at, base)
        return found, tuple((k, v if isinstance(v, tuple) else id(v)) for k, v in found.items())


def _value_key(value: Any) -> Any:
    """Return a hashable key under which equal values, and no others, agree."""
    match value:
        case bool() | None | str():
            return (type(value).__name__, value)
        case JsonNumber():
            return value.exact
        case list():
            return ("list", *map(_value_key, value))
        case dict():
            return ("dict", *((k, _value_key(v)) for k, v in value.items()))
        case _:
            return value
