"""Sets of Unicode scalar values as sorted ranges; surrogates cannot be members."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

LAST_CHARACTER = 0x10FFFF
SURROGATES = (0xD800, 0xDFFF)

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class CharacterSet:
    """An immutable set of Unicode scalar values.

    ``ranges`` are inclusive, sorted, disjoint, not adjacent, and free of surrogates; build sets
    with the class methods, which establish that.
    """

    ranges: tuple[Range, ...] = ()

    @classmethod
    def of(cls, ranges: Iterable[Range]) -> CharacterSet:
        """Return the union of inclusive ranges, without surrogates.

        Raises: ValueError — a range is reversed or leaves Unicode.
        """
        merged: list[Range] = []
        for low, high in sorted(ranges):
            if not 0 <= low <= high <= LAST_CHARACTER:
                raise ValueError(f"not a range of Unicode characters: {low:#x}-{high:#x}")
            if merged and low <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
            else:
                merged.append((low, high))
        return cls(tuple(_without_surrogates(merged)))

    @classmethod
    def single(cls, character: int) -> CharacterSet:
        """Return the set of one character."""
        return cls.of([(character, character)])

    @classmethod
    def from_text(cls, characters: str) -> CharacterSet:
        """Return the set of the characters of a string."""
        return cls.of((ord(c), ord(c)) for c in characters)

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __len__(self) -> int:
        return sum(high - low + 1 for low, high in self.ranges)

    def __contains__(self, character: int) -> bool:
        return any(low <= character <= high for low, high in self.ranges)

    def __iter__(self) -> Iterator[int]:
        for low, high in self.ranges:
            yield from range(low, high + 1)

    def __or__(self, other: CharacterSet) -> CharacterSet:
        return CharacterSet.of((*self.ranges, *other.ranges))

    def __and__(self, other: CharacterSet) -> CharacterSet:
        return CharacterSet.of(
            (max(a, c), min(b, d))
            for a, b in self.ranges
            for c, d in other.ranges
            if max(a, c) <= min(b, d)
        )

    def __sub__(self, other: CharacterSet) -> CharacterSet:
        return self & ~other

    def __invert__(self) -> CharacterSet:
        edges = [(-1, -1), *self.ranges, (LAST_CHARACTER + 1, LAST_CHARACTER + 1)]
        gaps = [(b + 1, c - 1) for (_, b), (c, _) in pairwise(edges)]
        return CharacterSet.of((low, high) for low, high in gaps if low <= high)


def _without_surrogates(ranges: Iterable[Range]) -> Iterator[Range]:
    first, last = SURROGATES
    for low, high in ranges:
        if high < first or low > last:
            yield low, high
            continue
        if low < first:
            yield low, first - 1
        if high > last:
            yield last + 1, high


ANY_CHARACTER = CharacterSet.of([(0, LAST_CHARACTER)])
