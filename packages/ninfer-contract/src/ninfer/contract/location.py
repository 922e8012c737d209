"""Where an error lies: values, never only strings.

Knows how to print itself. Does not know protocols: the gateway prefixes its own field path.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextPosition:
    """A place in a source text, such as a grammar or a JSON document.

    Units: line and column count from 1; the column counts Unicode characters.
    """

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"

    @classmethod
    def of_offset(cls, text: str, offset: int) -> TextPosition:
        """Return the position of character ``offset`` of ``text``; lines end at LF."""
        before = text[:offset]
        return cls(before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)


@dataclass(frozen=True, slots=True)
class TextOffset:
    """A place in a one-line expression; the offset counts Unicode characters from 0."""

    offset: int

    def __str__(self) -> str:
        return f"offset {self.offset}"


@dataclass(frozen=True, slots=True)
class JsonPointer:
    """A place in a JSON document.

    Source: RFC 6901; ``~`` and ``/`` inside a token print as ``~0`` and ``~1``.
    """

    tokens: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "".join("/" + t.replace("~", "~0").replace("/", "~1") for t in self.tokens)

    def __truediv__(self, token: str | int) -> JsonPointer:
        return JsonPointer((*self.tokens, str(token)))

    @classmethod
    def parse(cls, text: str) -> JsonPointer:
        """Read the printed form back.

        Raises: ValueError — the text is neither empty nor starts with ``/``.
        """
        if not text:
            return cls()
        if not text.startswith("/"):
            raise ValueError(f"a JSON Pointer starts with '/': {text!r}")
        return cls(tuple(t.replace("~1", "/").replace("~0", "~") for t in text[1:].split("/")))


@dataclass(frozen=True, slots=True)
class OptionPath:
    """A request option, such as ``stop.strings``, or one element of it."""

    name: str
    index: int | None = None

    def __str__(self) -> str:
        return self.name if self.index is None else f"{self.name}[{self.index}]"


Location = TextPosition | TextOffset | JsonPointer | OptionPath


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose text an error talks about: the answer's content, or one tool's parameters."""

    tool: str | None = None

    def __str__(self) -> str:
        return "content" if self.tool is None else f"tool:{self.tool}"


CONTENT = Origin()
