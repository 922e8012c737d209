"""The coarsest partition of the characters that a family of sets cannot tell apart."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from ninfer.text.automata.characters import CharacterSet, Range
from ninfer.text.automata.limits import Work


class Intervals:
    """The ranges between all borders of a family of sets, in order, and what each set covers."""

    def __init__(self, sets: Iterable[CharacterSet]) -> None:
        self.sets = list(dict.fromkeys(sets))
        borders = {b for s in self.sets for low, high in s.ranges for b in (low, high + 1)}
        points = sorted(borders)
        self.ranges: list[Range] = [(low, after - 1) for low, after in pairwise(points)]
        self._places = {point: place for place, point in enumerate(points)}

    def spans(self, members: CharacterSet) -> list[range]:
        """Return the places of the intervals that one of the sets covers."""
        places = self._places
        return [range(places[low], places[high + 1]) for low, high in members.ranges]

    def mask(self, members: CharacterSet) -> int:
        """Return the intervals that one of the sets covers as a bit set."""
        return sum((1 << span.stop) - (1 << span.start) for span in self.spans(members))


class Alphabet:
    """Character classes, numbered from 0, with their ranges.

    Characters outside every given set belong to no class.

    Raises: AutomatonLimit — the sets cut each other into too many classes.
    """

    def __init__(self, sets: Iterable[CharacterSet], work: Work | None = None) -> None:
        intervals = Intervals(sets)
        spans = {members: intervals.spans(members) for members in intervals.sets}
        covered = sum(len(span) for parts in spans.values() for span in parts)
        (work or Work()).spend(covered)
        self.ranges: list[list[Range]] = []
        numbers = self._numbers(intervals, spans)
        self.classes: dict[CharacterSet, tuple[int, ...]] = {
            members: tuple(sorted({numbers[place] for span in parts for place in span}))
            for members, parts in spans.items()
        }

    def _numbers(
        self, intervals: Intervals, spans: dict[CharacterSet, list[range]]
    ) -> dict[int, int]:
        """Return the class of every covered interval: equal sets of coverers, equal classes."""
        toggles = [0] * (len(intervals.ranges) + 1)
        for index, parts in enumerate(spans.values()):
            for span in parts:
                toggles[span.start] ^= 1 << index
                toggles[span.stop] ^= 1 << index
        numbers: dict[int, int] = {}
        classes: dict[int, int] = {}
        coverers = 0
        for place, interval in enumerate(intervals.ranges):
            coverers ^= toggles[place]
            if coverers:
                numbers[place] = classes.setdefault(coverers, len(classes))
                if numbers[place] == len(self.ranges):
                    self.ranges.append([])
                self.ranges[numbers[place]].append(interval)
        return numbers
