"""Objects in which something is counted: each distance into the object is a state.

``minProperties``, ``maxProperties``, required names that nothing declares, and members of unknown
name that must exist. A repeated unknown name counts once, so that no repetition fills a minimum.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ninfer.contract.errors import UnsupportedSchema
from ninfer.contract.location import JsonPointer
from ninfer.text.grammar import EMPTY, NOTHING, Node, Reference, alternation, concatenation
from ninfer.text.schema.members import Members

PLACE_LIMIT = 4_096
"""How many distances into one object may be told apart."""


class _Place(NamedTuple):
    """How far an object is: members passed, seen, surely distinct, floating names seen."""

    passed: int = 0
    seen: int = 0
    distinct: int = 0
    floating: frozenset[int] = frozenset()
    is_started: bool = False
    has_unknown: bool = False


@dataclass(slots=True)
class CountedMembers:
    """The states of one object, made from a queue; behind a quote a state only names members."""

    members: Members
    _before: dict[_Place, Reference] = field(default_factory=dict)
    _behind: dict[_Place, Reference] = field(default_factory=dict)
    _pending: list[tuple[_Place, bool]] = field(default_factory=list)

    def node(self) -> Node:
        """Return the members of the whole object."""
        rules = self.members.rules
        start = self._reference(_Place(), is_behind=False)
        while self._pending:
            place, is_behind = self._pending.pop()
            if is_behind:
                rules.define(self._behind[place], alternation(*self._names(place)))
            else:
                rules.define(self._before[place], self._choice(place))
        return start

    def _reference(self, place: _Place, *, is_behind: bool) -> Node:
        made = self._behind if is_behind else self._before
        if place not in made:
            if len(self._before) + len(self._behind) >= PLACE_LIMIT:
                raise UnsupportedSchema(
                    f"needs more than {PLACE_LIMIT} places to count the members of an object",
                    keyword="counted_members",
                    location=JsonPointer(),
                )
            made[place] = self.members.rules.reserve()
            self._pending.append((place, is_behind))
        return made[place]

    def _choice(self, place: _Place) -> Node:
        """Return the end where it may come, or a separator and the next member."""
        if not self._has_room(place):
            return self._end(place)
        more = concatenation(self._separator(place), self._reference(place, is_behind=True))
        return alternation(self._end(place), more)

    def _separator(self, place: _Place) -> Node:
        return self.members.separator if place.is_started else self.members.opening

    def _has_room(self, place: _Place) -> bool:
        most = self.members.shape.most
        return most is None or place.seen < most - len(self.members.last)

    def _names(self, place: _Place) -> list[Node]:
        """Return the members that may stand at a place, each with what follows it."""
        ordered = self.members.ordered
        if place.passed < len(ordered):
            member = ordered[place.passed]
            after = place._replace(passed=place.passed + 1)
            taken = self._step(place, member.node, after)
            return [taken] if member.required else [taken, self._reference(after, is_behind=True)]
        options: list[Node] = []
        for number, node in enumerate(self.members.floating):
            if number not in place.floating:
                seen = place._replace(floating=place.floating | {number})
                options.append(self._step(place, node, seen))
        if self.members.unknown != NOTHING:
            options.append(self._step(place, self.members.unknown, place, is_unknown=True))
        return options

    def _step(
        self, place: _Place, member: Node, after: _Place, *, is_unknown: bool = False
    ) -> Node:
        most, least = self.members.shape.most, self.members.shape.least
        is_distinct = not (is_unknown and place.has_unknown)
        after = after._replace(
            seen=place.seen + 1 if most is not None else 0,
            distinct=min(least, place.distinct + is_distinct),
            is_started=True,
            has_unknown=place.has_unknown or (is_unknown and bool(least)),
        )
        return concatenation(member, self._reference(after, is_behind=False))

    def _end(self, place: _Place) -> Node:
        """Return the members that must stand last, where nothing else is missing.

        They stand last because a later member of the same name would replace them.
        """
        members = self.members
        if any(member.required for member in members.ordered[place.passed :]):
            return NOTHING
        if len(place.floating) < len(members.floating):
            return NOTHING
        distinct = place.distinct + (0 if place.has_unknown else len(members.last))
        if distinct < members.shape.least:
            return NOTHING
        parts: list[Node] = []
        for number, last in enumerate(members.last):
            is_first = not number and not place.is_started
            parts += [members.opening if is_first else members.separator, last]
        return concatenation(*parts) if parts else EMPTY
