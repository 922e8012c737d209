"""The language an answer is held to, as the caller declares it: source text, never compiled.

Source: specification 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class ConstraintKind(Enum):
    """The five kinds of content constraint."""

    GRAMMAR = "grammar"
    JSON_OBJECT = "json_object"
    JSON_SCHEMA = "json_schema"
    CHOICE = "choice"
    REGEX = "regex"


class UnknownKeywords(Enum):
    """What a schema keyword unknown to every dialect means: an error, or an annotation."""

    REFUSE = "refuse"
    ANNOTATE = "annotate"


@dataclass(frozen=True, slots=True)
class OutputConstraint:
    """One content constraint; build it with the factory methods.

    ``source`` holds the GBNF, schema or regex text, ``literals`` the choice strings in the
    caller's order. Nothing is checked here: admission does, with the place of each error.
    """

    kind: ConstraintKind
    source: str = ""
    literals: tuple[str, ...] = ()
    unknown_keywords: UnknownKeywords = UnknownKeywords.REFUSE

    @classmethod
    def grammar(cls, text: str) -> OutputConstraint:
        """Hold the answer to a GBNF text whose entry rule is ``root``."""
        return cls(ConstraintKind.GRAMMAR, text)

    @classmethod
    def json_object(cls) -> OutputConstraint:
        """Hold the answer to one JSON object."""
        return cls(ConstraintKind.JSON_OBJECT)

    @classmethod
    def json_schema(
        cls, text: str, unknown_keywords: UnknownKeywords = UnknownKeywords.REFUSE
    ) -> OutputConstraint:
        """Hold the answer to a JSON Schema document, given as its source text."""
        return cls(ConstraintKind.JSON_SCHEMA, text, unknown_keywords=unknown_keywords)

    @classmethod
    def choice(cls, literals: list[str] | tuple[str, ...]) -> OutputConstraint:
        """Hold the answer to exactly one of the given strings.

        Raises: TypeError — one string instead of a list, which would be a list of its characters.
        """
        if isinstance(literals, str):
            raise TypeError("choice: a list of strings is needed, not one string")
        return cls(ConstraintKind.CHOICE, literals=tuple(literals))

    @classmethod
    def regex(cls, expression: str) -> OutputConstraint:
        """Hold the whole answer to a regular expression of the ECMAScript subset."""
        return cls(ConstraintKind.REGEX, expression)
