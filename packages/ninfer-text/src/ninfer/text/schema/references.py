"""Identities inside one document and the references between them.

Knows base addresses, JSON Pointer fragments and plain-name anchors; nothing is ever fetched.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import unquote, urldefrag, urljoin

from ninfer.contract.errors import InvalidSchema, UnsupportedSchema
from ninfer.contract.location import JsonPointer


@dataclass(slots=True)
class Identities:
    """Every resource and anchor of a document, by absolute address."""

    resources: dict[str, JsonPointer] = field(default_factory=lambda: {"": JsonPointer()})
    anchors: dict[tuple[str, str], JsonPointer] = field(default_factory=dict)

    def declare(self, base: str, identity: str, place: JsonPointer, keyword: str) -> str:
        """Register ``identity`` of the schema at ``place`` and return its base address.

        Raises: InvalidSchema — no address, or another schema has it.
        """
        try:
            address, fragment = urldefrag(urljoin(base, identity) if identity else base)
        except ValueError:
            raise InvalidSchema("is no URI reference", location=place / keyword) from None
        if identity.startswith("#"):
            if len(identity) > 1 and not fragment.startswith("/"):
                self.name(base, fragment, place, keyword)
            return base
        if self.resources.setdefault(address, place) != place:
            raise InvalidSchema(f"{address!r} is declared twice", location=place / keyword)
        return address

    def name(self, base: str, anchor: str, place: JsonPointer, keyword: str) -> None:
        """Register a plain-name anchor.

        Raises: InvalidSchema — another schema has it.
        """
        if self.anchors.setdefault((base, anchor), place) != place:
            raise InvalidSchema(f"{anchor!r} is declared twice", location=place / keyword)

    def resolve(self, base: str, reference: str, place: JsonPointer) -> JsonPointer:
        """Return the place that a reference names; whether a schema stands there is not checked.

        Raises: InvalidSchema — a malformed reference or an unknown anchor;
                UnsupportedSchema — another document.
        """
        try:
            address, _ = urldefrag(reference)
            address = urljoin(base, address) if address else base
        except ValueError:
            raise InvalidSchema("is no URI reference", location=place) from None
        root = self.resources.get(address)
        if root is None:
            raise UnsupportedSchema(
                f"{reference!r} names another document; nothing is fetched",
                keyword="$ref",
                location=place,
            )
        return self._inside(address, root, reference, place)

    def _inside(
        self, address: str, root: JsonPointer, reference: str, place: JsonPointer
    ) -> JsonPointer:
        try:
            fragment = unquote(reference.partition("#")[2], errors="strict")
        except UnicodeDecodeError:
            raise InvalidSchema("is no URI reference", location=place) from None
        if not fragment:
            return root
        if fragment.startswith("/"):
            return JsonPointer((*root.tokens, *JsonPointer.parse(fragment).tokens))
        target = self.anchors.get((address, fragment))
        if target is None:
            raise InvalidSchema(f"no schema is named {fragment!r}", location=place)
        return target
