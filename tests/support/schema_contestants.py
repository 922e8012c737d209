"""Engines that take a JSON Schema, behind one face: text in, acceptance of texts out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ninfer.contract import (
    OutputConstraint,
    RequestError,
    UnknownKeywords,
    UnsatisfiableConstraint,
    UnsupportedSchema,
)
from ninfer.text import Compiled, ConstraintCompiler
from support.contestants import bare_compiler, guidance_tokenizer
from support.vocabularies import byte_vocabulary

Accepts = Callable[[str], bool]


class Refused(Exception):
    """A schema is refused; ``has_place`` tells whether the refusal says where."""

    def __init__(self, reason: str, *, has_place: bool = False) -> None:
        super().__init__(reason)
        self.has_place = has_place


class Unsatisfiable(Exception):
    """A schema is refused because nothing satisfies it."""


class Contestant(Protocol):
    """One engine."""

    def prepare(self, source: str) -> Accepts:
        """Compile a schema; the result decides whole texts."""
        ...


class Ours:
    """The product behind one unknown-keyword policy, over single bytes."""

    def __init__(self, unknown: UnknownKeywords = UnknownKeywords.REFUSE) -> None:
        self.unknown = unknown
        self.compiler = ConstraintCompiler(byte_vocabulary())

    def prepare(self, source: str) -> Accepts:
        compiled = self.compiled(source)

        def accepts(text: str) -> bool:
            matcher = self.compiler.matcher(compiled)
            data = text.encode()
            return matcher.feed(data) == len(data) and matcher.can_end

        return accepts

    def compiled(self, source: str) -> Compiled:
        """Return the compiled language of a schema."""
        try:
            return self.compiler.compile(OutputConstraint.json_schema(source, self.unknown))
        except UnsatisfiableConstraint as error:
            raise Unsatisfiable(str(error)) from None
        except RequestError as error:
            kind = error.keyword if isinstance(error, UnsupportedSchema) else error.code
            has_place = error.location is not None
            raise Refused(f"{kind}: {error}", has_place=has_place) from None


class Guidance:
    """llguidance with its strict white space, over single bytes."""

    def prepare(self, source: str) -> Accepts:
        import llguidance

        tokenizer: Any = guidance_tokenizer(byte_vocabulary())
        try:
            grammar = llguidance.LLMatcher.grammar_from_json_schema(
                source, defaults={"whitespace_flexible": False}
            )
        except ValueError as error:
            raise Refused(f"schema: {error}") from None
        matcher = llguidance.LLMatcher(tokenizer, grammar)
        if matcher.is_error():
            raise Refused(f"schema: {matcher.get_error()}")

        def accepts(text: str) -> bool:
            walker = matcher.deep_copy()
            return walker.consume_tokens(list(text.encode())) and walker.is_accepting()

        return accepts


class BareCore:
    """The grammar core's own JSON Schema converter, strict about white space only."""

    def prepare(self, source: str) -> Accepts:
        import xgrammar

        try:
            grammar = xgrammar.Grammar.from_json_schema(
                source, any_whitespace=False, separators=(",", ":"), strict_mode=False
            )
            compiled = bare_compiler(byte_vocabulary()).compile_grammar(grammar)
        except Exception as error:
            raise Refused(f"schema: {error}") from None

        def accepts(text: str) -> bool:
            matcher = xgrammar.GrammarMatcher(compiled)
            return matcher.accept_string(text) and matcher.is_completed()

        return accepts
