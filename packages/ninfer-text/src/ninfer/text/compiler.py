"""Constraints to compiled grammars: admission, envelope, emission, compilation, remembered.

Owns the identity of a language. Does not know stages or tools: an envelope is a name and a
function.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from time import perf_counter

from ninfer.contract import (
    CacheOutcome,
    ConstraintKind,
    InvalidChoice,
    InvalidGrammar,
    InvalidRegex,
    JsonPointer,
    OptionPath,
    OutputConstraint,
    RequestError,
    TextOffset,
    TextPosition,
    TokenVocabulary,
    UnsatisfiableConstraint,
    UnsupportedSchema,
    WarmUpReport,
)
from ninfer.text._core import CompiledGrammar
from ninfer.text._matcher import Matcher
from ninfer.text.admission import admit
from ninfer.text.cache import CompilationCache
from ninfer.text.choice import canonical_choice
from ninfer.text.collection import collection_held
from ninfer.text.core import GrammarCore
from ninfer.text.emitter import emit
from ninfer.text.grammar import Grammar
from ninfer.text.warm_up import (
    WARM_UP_BYTES,
    WARM_UP_SECONDS,
    WarmLanguage,
    WarmUp,
    constraint_languages,
)

CACHE_BYTES = 256 << 20
EMITTED_LIMIT = 4_000_000
"""Characters of a grammar as the core reads it, who takes a second and 300 MB for half of them."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """What a model's output wraps around a language; equal identities wrap equally."""

    identity: str
    wrap: Callable[[Grammar], Grammar]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A grammar ready for matchers, how it was had, and the wall clock that took."""

    grammar: CompiledGrammar
    cache: CacheOutcome
    prepare_seconds: float


class ConstraintCompiler:
    """Compiles constraints for one vocabulary and remembers grammars and refusals.

    Units:   ``cache_bytes`` bounds the compiled grammars that are kept while nobody uses them.
    Effects: thread-safe. The vocabulary is indexed once, by the first constraint. One build a
             language at a time, two builds at once, each on its caller's thread.
    Source:  specification 3.4.
    """

    def __init__(self, vocabulary: TokenVocabulary, *, cache_bytes: int = CACHE_BYTES) -> None:
        self.vocabulary = vocabulary
        self._cache = CompilationCache[CompiledGrammar](cache_bytes)
        self._core: GrammarCore | None = None
        self._core_lock = threading.Lock()

    @property
    def cached_bytes(self) -> int:
        """Return what the remembered grammars hold."""
        return self._cache.held_bytes

    @property
    def core(self) -> GrammarCore:
        """Return the grammar core, indexing the vocabulary if nobody did before."""
        with self._core_lock:
            if self._core is None:
                self._core = GrammarCore(self.vocabulary)
            return self._core

    def compile(self, constraint: OutputConstraint, envelope: Envelope | None = None) -> Compiled:
        """Return the compiled language of a constraint inside an envelope.

        Math:   the identity is kind, source, options and envelope; for a choice, the set.
        Raises: every RequestError of ``ninfer.text.admission.admit``; UnsatisfiableConstraint —
                nothing can be generated, not even a first token.
        """
        key = _constraint_key(constraint, "" if envelope is None else envelope.identity)
        return self._prepare(key, partial(self._language, constraint, envelope), constraint.kind)

    def compile_language(
        self,
        key: str,
        build: Callable[[], Grammar],
        kind: ConstraintKind = ConstraintKind.GRAMMAR,
    ) -> Compiled:
        """Return the compiled form of a language that its caller builds, such as a tool contract.

        Math:    equal keys mean equal languages.
        Effects: ``build`` runs only where the key is new; what it refuses is remembered.
        Raises:  what ``build`` raises; UnsatisfiableConstraint of ``kind`` — no first token.
        """
        return self._prepare(_digest("language", key), build, kind)

    def matcher(self, compiled: Compiled) -> Matcher:
        """Return a new matcher at the start of a compiled language."""
        return Matcher(compiled.grammar)

    def warm_up(
        self,
        further: Sequence[WarmLanguage] = (),
        *,
        seconds: float = WARM_UP_SECONDS,
        cache_bytes: int = WARM_UP_BYTES,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> WarmUpReport:
        """Index the vocabulary and fill the masks that answers share; say which.

        Units:   ``seconds`` of wall clock, ``cache_bytes`` of grammars and shared masks; both are
                 looked at between languages, as is ``is_wanted``. About a second of CPU with a
                 vocabulary of 248,000 tokens; meant for a thread of its own.
        Effects: requests may be compiled meanwhile and wait for no more than their own language.
        """
        core = self.core
        run = WarmUp(
            seconds, cache_bytes, lambda: core.rule_cache_bytes + self.cached_bytes, is_wanted
        )
        return run.run(constraint_languages(lambda c: self.compile(c).grammar, further))

    def _language(self, constraint: OutputConstraint, envelope: Envelope | None) -> Grammar:
        grammar = admit(constraint, self.vocabulary)
        return grammar if envelope is None else envelope.wrap(grammar)

    def _prepare(self, key: bytes, build: Callable[[], Grammar], kind: ConstraintKind) -> Compiled:
        start = perf_counter()
        grammar, outcome = self._cache.get(key, partial(self._build, build, kind))
        return Compiled(grammar, outcome, perf_counter() - start)

    def _build(self, build: Callable[[], Grammar], kind: ConstraintKind) -> CompiledGrammar:
        with collection_held():
            emitted = emit(build())
        if len(emitted) > EMITTED_LIMIT:
            raise _too_long(kind)
        compiled = self.core.compile(emitted)
        if not _has_first_token(compiled):
            raise UnsatisfiableConstraint("no token can begin it", kind=kind)
        return compiled


def _too_long(kind: ConstraintKind) -> RequestError:
    """Return the refusal of a language that no counted limit of its kind kept short."""
    fact = f"the language needs more than {EMITTED_LIMIT} characters as a grammar"
    match kind:
        case ConstraintKind.JSON_SCHEMA:
            return UnsupportedSchema(fact, keyword="grammar_characters", location=JsonPointer())
        case ConstraintKind.REGEX:
            return InvalidRegex(fact, location=TextOffset(0))
        case ConstraintKind.CHOICE:
            return InvalidChoice(fact, location=OptionPath("choice"))
        case _:
            return InvalidGrammar(fact, location=TextPosition(1, 1))


def _has_first_token(grammar: CompiledGrammar) -> bool:
    # The mask stays with the grammar, so the first token of every request finds it ready.
    words = grammar.index.mask_words
    mask = memoryview(bytearray(4 * words)).cast("i", (1, words))
    return not Matcher(grammar).lookahead((), mask).dead_ends


def _constraint_key(constraint: OutputConstraint, envelope: str) -> bytes:
    texts: tuple[str, ...] = (constraint.source,)
    if constraint.kind is ConstraintKind.CHOICE:
        texts = canonical_choice(constraint.literals)
    options = constraint.unknown_keywords.value
    return _digest("constraint", constraint.kind.value, options, envelope, *texts)


def _digest(*parts: str) -> bytes:
    digest = blake2b(digest_size=32)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.digest()
