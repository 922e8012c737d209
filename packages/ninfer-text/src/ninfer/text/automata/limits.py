"""The counted limits of automaton work, and the refusal that names one of them."""

from __future__ import annotations

STATE_LIMIT = 65_536
"""States of one automaton, deterministic or not."""
MEMBER_LIMIT = 2_000_000
"""Nondeterministic states looked at while subsets are built, each as often as it is a member."""
CLOSURE_LIMIT = 500_000
"""Nondeterministic states visited while jumps are followed."""
CHARACTER_LIMIT = 8_192
"""Explicit length bound of a bounded automaton, in characters."""


class AutomatonLimit(Exception):
    """Work on an automaton would pass a stated limit; callers add the place.

    ``name`` is the limit's name, ``limit`` its value.
    """

    def __init__(self, name: str, limit: int) -> None:
        super().__init__(f"more than {limit} {name}")
        self.name = name
        self.limit = limit

    @classmethod
    def states(cls, limit: int = STATE_LIMIT) -> AutomatonLimit:
        """Return the refusal for too many states."""
        return cls("automaton states", limit)

    @classmethod
    def members(cls, limit: int = MEMBER_LIMIT) -> AutomatonLimit:
        """Return the refusal for too much work on subsets."""
        return cls("steps between automaton states", limit)

    @classmethod
    def characters(cls, limit: int = CHARACTER_LIMIT) -> AutomatonLimit:
        """Return the refusal for a length bound that is too large."""
        return cls("characters in a length bound", limit)
