"""The cheapest answers of a compiled language, found by walking its matcher byte by byte."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ninfer.contract import TokenMatcher, TokenVocabulary, mask_words

_BYTES = 256
BYTE_VOCABULARY = TokenVocabulary.build(
    [bytes([byte]) for byte in range(_BYTES)] + [b""], eos=[_BYTES]
)
"""One token per byte and EOS: every language can be walked without a model."""


class Exploration(NamedTuple):
    """Answers in order of cost; ``exhausted`` says that the language has no others."""

    answers: tuple[str, ...]
    exhausted: bool


def explore(open_matcher: Callable[[], TokenMatcher], *, visits: int, limit: int) -> Exploration:
    """Return up to ``limit`` answers of a language over BYTE_VOCABULARY.

    Math: best-first search over byte prefixes; a forced byte costs nothing, a chosen one less the
          sooner it tends to close what is open. At most ``visits`` prefixes are looked at.
    """
    answers: list[str] = []
    frontier: list[tuple[int, int, bytes]] = [(0, 0, b"")]
    for _ in range(visits):
        if not frontier or len(answers) > limit:
            break
        cost, length, prefix = heapq.heappop(frontier)
        matcher = open_matcher()
        matcher.feed(prefix)
        if matcher.can_end:
            answers.append(prefix.decode("utf-8"))
        allowed = list(_allowed_bytes(matcher))
        forced = len(allowed) == 1 and not matcher.can_end
        for byte in allowed:
            step = 0 if forced else _cost(byte)
            heapq.heappush(frontier, (cost + step, length + 1, prefix + bytes([byte])))
    exhausted = not frontier and len(answers) <= limit
    return Exploration(tuple(answers[:limit]), exhausted)


def _allowed_bytes(matcher: TokenMatcher) -> Iterator[int]:
    words = mask_words(BYTE_VOCABULARY.token_domain)
    storage = bytearray(4 * words)
    found = matcher.lookahead((), memoryview(storage).cast("i", (1, words)))
    if found.dead_ends & 1:
        return
    bits = int.from_bytes(storage, "little")
    yield from (byte for byte in range(_BYTES) if bits >> byte & 1)


def _cost(byte: int) -> int:
    character = chr(byte)
    if character in '"}]':
        return 1
    if character in "0123456789":
        return 2
    return 3 if character.isascii() and character.isalpha() else 4 if character.isascii() else 8
