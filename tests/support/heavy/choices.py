"""Lists of choices made to be large."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

Family = Callable[[Random, int], list[str]]


def short(source: Random, size: int) -> list[str]:
    """Return very many short texts."""
    return ["".join(source.choices("abcdefgh", k=source.randint(1, 6))) for _ in range(size // 4)]


def one_long(source: Random, size: int) -> list[str]:
    """Return one text."""
    return ["".join(source.choices("ab 上😀\n\x00", k=size))]


def shared_beginnings(source: Random, size: int) -> list[str]:
    """Return prefixes of one text."""
    step = source.choice((1, 7, 40))
    text = "".join(source.choices("ab", k=max(2, int((2 * size * step) ** 0.5))))
    return [text[:length] for length in range(0, len(text), step)]


def shared_endings(source: Random, size: int) -> list[str]:
    """Return different beginnings of one long ending."""
    ending = "".join(source.choices("xyz", k=source.choice((3, 30, 300))))
    return [f"{number:x}{ending}" for number in range(max(1, size // (len(ending) + 4)))]


def numbers(source: Random, size: int) -> list[str]:
    """Return consecutive numbers."""
    first = source.randrange(10**6)
    return [f"item_{first + number}_suffix" for number in range(max(1, size // 18))]


def any_characters(source: Random, size: int) -> list[str]:
    """Return texts of characters from everywhere."""
    pool = [*range(0xD800), *range(0xE000, 0x110000, 97)]
    return ["".join(map(chr, source.choices(pool, k=8))) for _ in range(max(1, size // 24))]


FAMILIES: dict[str, Family] = {
    f.__name__: f
    for f in (short, one_long, shared_beginnings, shared_endings, numbers, any_characters)
}
