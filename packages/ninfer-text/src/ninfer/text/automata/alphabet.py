"""The coarsest partition of the characters that a family of sets cannot tell apart."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from ninfer.text.automata.characters import CharacterSet, Range


class Alphabet:
    """Character classes, numbered from 0, with their ranges.

    Characters outside every given set belong to no class.
    """

    def __init__(self, sets: Iterable[CharacterSet]) -> None:
        distinct = list(dict.fromkeys(sets))
        opens: dict[int, list[int]] = {}
        for index, members in enumerate(distinct):
            for low, high in members.ranges:
                opens.setdefault(low, []).append(index)
                opens.setdefault(high + 1, []).append(~index)
        numbers: dict[frozenset[int], int] = {}
        self.ranges: list[list[Range]] = []
        present: set[int] = set()
        points = sorted(opens)
        for point, following in pairwise([*points, 0x110000]):
            for index in opens[point]:
                if index >= 0:
                    present.add(index)
                else:
                    present.discard(~index)
            if present:
                signature = frozenset(present)
                number = numbers.setdefault(signature, len(numbers))
                if number == len(self.ranges):
                    self.ranges.append([])
                self.ranges[number].append((point, following - 1))
        self.classes: dict[CharacterSet, tuple[int, ...]] = {
            members: tuple(n for signature, n in numbers.items() if index in signature)
            for index, members in enumerate(distinct)
        }
