"""The cheapest answers of a compiled language, found by walking its matcher byte by byte."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from time import thread_time
from typing import NamedTuple

from ninfer.contract import TokenMatcher, TokenVocabulary, mask_words

_BYTES = 256
_DIVE_BYTES = 64
BYTE_VOCABULARY = TokenVocabulary.build(
    [bytes([byte]) for byte in range(_BYTES)] + [b""], eos=[_BYTES]
)
"""One token per byte and EOS: every language can be walked without a model."""


class Exploration(NamedTuple):
    """Answers in order of cost; ``exhausted`` says that the language has no others."""

    answers: tuple[str, ...]
    exhausted: bool


def explore(
    open_matcher: Callable[[], TokenMatcher], *, visits: int, limit: int, seconds: float = 0.3
) -> Exploration:
    """Return up to ``limit`` answers of a language over BYTE_VOCABULARY.

    Math: best-first search over byte prefixes that follows the cheapest byte down to an answer
          before it takes up what it left aside; a forced byte costs nothing, a chosen one less the
          sooner it tends to close what is open. At most ``visits`` prefixes are looked at, and
          no dive takes more than ``_DIVE_BYTES``.
    Units:   ``seconds`` of this thread's CPU: a language in which every byte costs much is looked
             at less, and no answer is lost but the ones not reached.
    """
    answers: list[str] = []
    frontier: list[_Node] = [_Node(0, 0, b"")]
    dive: _Node | None = None
    matcher = open_matcher()
    depth = 0
    deadline = thread_time() + seconds
    for _ in range(visits):
        if len(answers) > limit or (dive is None and not frontier):
            break
        if thread_time() > deadline:
            return Exploration(tuple(answers[:limit]), exhausted=False)
        depth = depth + 1 if dive else 0
        node = dive or heapq.heappop(frontier)
        if dive is None:
            matcher = open_matcher()
        matcher.feed(node.prefix if dive is None else node.prefix[-1:])
        if matcher.can_end:
            answers.append(node.prefix.decode("utf-8"))
        following = sorted(_following(node, list(_allowed_bytes(matcher)), matcher.can_end))
        goes_on = following and not matcher.can_end and depth < _DIVE_BYTES
        dive = following.pop(0) if goes_on else None
        for other in following:
            heapq.heappush(frontier, other)
    exhausted = dive is None and not frontier and len(answers) <= limit
    return Exploration(tuple(answers[:limit]), exhausted)


class _Node(NamedTuple):
    """A prefix and what it cost; shorter ones come first among equals."""

    cost: int
    length: int
    prefix: bytes


def _following(node: _Node, allowed: list[int], can_end: bool) -> Iterator[_Node]:
    forced = len(allowed) == 1 and not can_end
    is_quoted = node.prefix.count(b'"') % 2 == 1
    for byte in allowed:
        step = 0 if forced else _cost(byte, is_quoted=is_quoted)
        yield _Node(node.cost + step, node.length + 1, node.prefix + bytes([byte]))


def _allowed_bytes(matcher: TokenMatcher) -> Iterator[int]:
    words = mask_words(BYTE_VOCABULARY.token_domain)
    storage = bytearray(4 * words)
    found = matcher.lookahead((), memoryview(storage).cast("i", (1, words)))
    if found.dead_ends & 1:
        return
    bits = int.from_bytes(storage, "little")
    yield from (byte for byte in range(_BYTES) if bits >> byte & 1)


def _cost(byte: int, *, is_quoted: bool) -> int:
    character = chr(byte)
    if character == '"' or (character in "}]" and not is_quoted):
        return 1
    if character.isascii() and character.isalnum():
        return 2
    return 4 if character.isascii() else 8
