"""Visits the states that most answers share, so that no request pays for their first masks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import NamedTuple

from ninfer.contract import (
    LeftOut,
    OutputConstraint,
    RequestError,
    WarmUpReport,
    WarmUpStop,
)
from ninfer.text._core import CompiledGrammar
from ninfer.text._matcher import Matcher

WARM_UP_SECONDS = 10.0
"""Ten times what a vocabulary of 248,000 tokens takes on one idle core."""
WARM_UP_BYTES = 32 << 20
"""Half of what the core keeps of shared masks, so that requests keep the other half."""

SCHEMA = """{"type": "object", "additionalProperties": false,
"required": ["text", "count", "ratio", "flag", "items"],
"properties": {
    "text": {"type": "string"}, "count": {"type": "integer"}, "ratio": {"type": "number"},
    "flag": {"type": "boolean"}, "items": {"type": "array", "items": {"type": "string"}},
    "last": {"type": "string"}}}"""
OPEN = '{"type": "object", "properties": {"a": {"type": "string", "maxLength": 256}}}'

WALKS: Sequence[tuple[OutputConstraint, str]] = (
    (
        OutputConstraint.json_object(),
        r'{"a":"b\n\u00e9\ud83d\ude00","c":[-1.5e+10,0.25,{},[],true,null,"d"],"e":{"f":false}}',
    ),
    (
        OutputConstraint.json_schema(SCHEMA),
        r'{"text":"a\n\u00e9\ud83d\ude00b","count":-10,"ratio":1.5e+10,"flag":true,'
        r'"items":["a","b"],"last":"c"}',
    ),
    (OutputConstraint.json_schema(OPEN), r'{"a":"b\n","c":[1,"d"],"e":{"f":null}}'),
    (OutputConstraint.json_schema('{"type": "string"}'), r'"a\n\u00e9"'),
)
"""Constraints and an answer to each that passes the rules of strings, numbers and containers."""

PATTERN_WALKS: Sequence[tuple[OutputConstraint, str]] = tuple(
    (OutputConstraint.regex(expression), answer)
    for expression, answer in (
        ("[0-9]+", "12"),
        ("[a-z]+", "ab"),
        ("[A-Z]+", "AB"),
        ("[a-zA-Z]+", "aB"),
        ("[a-z0-9-]+", "a-1"),
        ("[a-zA-Z0-9_-]+", "aB_1"),
        (r"\w+", "a_1"),
        (".+", "a b"),
        (".*", "a b"),
    )
)
"""Classes of letters and digits, and anything in one line, as whole answers."""


class WarmLanguage(NamedTuple):
    """A language to compile, and a beginning of its words to fill the masks of."""

    name: str
    compile: Callable[[], CompiledGrammar]
    beginning: str


@dataclass(slots=True)
class WarmUp:
    """One warm-up: languages in order, until all are done or a limit is passed.

    Units:   ``seconds`` of wall clock and ``cache_bytes`` of ``held_bytes`` are looked at between
             languages, so each may be passed by one language.
    Effects: never raises because of a limit, nor because a vocabulary cannot spell a language.
    """

    seconds: float
    cache_bytes: int
    held_bytes: Callable[[], int]
    is_wanted: Callable[[], bool]
    _done: list[str] = field(default_factory=list)
    _left_out: list[LeftOut] = field(default_factory=list)

    def run(self, languages: Iterable[WarmLanguage]) -> WarmUpReport:
        """Compile the languages, fill their masks, and say which."""
        start = perf_counter()
        stop: WarmUpStop | None = None
        for language in languages:
            stop = stop or self._limit(perf_counter() - start)
            found = stop or _warm(language)
            if found is None:
                self._done.append(language.name)
            else:
                self._left_out.append(LeftOut(language.name, found))
        seconds = perf_counter() - start
        return WarmUpReport(tuple(self._done), tuple(self._left_out), seconds, self.held_bytes())

    def _limit(self, seconds: float) -> WarmUpStop | None:
        if not self.is_wanted():
            return WarmUpStop.STOPPED
        if seconds >= self.seconds:
            return WarmUpStop.SECONDS
        return WarmUpStop.BYTES if self.held_bytes() >= self.cache_bytes else None


def constraint_languages(
    compile_constraint: Callable[[OutputConstraint], CompiledGrammar],
    further: Iterable[WarmLanguage] = (),
) -> Iterable[WarmLanguage]:
    """Yield what answers of any model share, the most common first; ``further`` early on."""
    from ninfer.text.schema.warm import SCHEMA_WALKS

    def language(constraint: OutputConstraint, beginning: str) -> WarmLanguage:
        name = f"{constraint.kind.value} {constraint.source}".rstrip()
        return WarmLanguage(name, lambda: compile_constraint(constraint), beginning)

    schemas = ((OutputConstraint.json_schema(source), word) for source, word in SCHEMA_WALKS)
    yield from (language(*walk) for walk in WALKS)
    yield from further
    yield from (language(*walk) for walk in (*schemas, *PATTERN_WALKS))


def _warm(language: WarmLanguage) -> WarmUpStop | None:
    try:
        matcher = Matcher(language.compile())
    except RequestError:
        return WarmUpStop.REFUSED
    mask = memoryview(bytearray(4 * matcher.mask_words)).cast("i", (1, matcher.mask_words))
    for byte in language.beginning.encode():
        matcher.lookahead((), mask)
        matcher.feed(bytes([byte]))
    matcher.lookahead((), mask)
    return None
