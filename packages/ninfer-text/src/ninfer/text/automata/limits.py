"""The counted limits of automaton work, and the refusal that names one of them."""

from __future__ import annotations

STATE_LIMIT = 65_536
"""States of one automaton, deterministic or not."""
STEP_LIMIT = 6_000_000
"""Steps between states while automata are built: about a second. A subset costs, for every class
that one of its members reads, the states that this leads to and one; an edge made costs twenty."""
RANGE_LIMIT = 262_144
"""Edges of one automaton, one for every range of characters and target."""
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
    def steps(cls, limit: int = STEP_LIMIT) -> AutomatonLimit:
        """Return the refusal for too much work."""
        return cls("steps between automaton states", limit)

    @classmethod
    def characters(cls, limit: int = CHARACTER_LIMIT) -> AutomatonLimit:
        """Return the refusal for a length bound that is too large."""
        return cls("characters in a length bound", limit)


class Work:
    """Counted steps that several constructions share.

    Units: ``limit`` steps, as ``STEP_LIMIT`` counts them.
    """

    __slots__ = ("_left", "limit")

    def __init__(self, limit: int = STEP_LIMIT) -> None:
        self.limit = limit
        self._left = limit

    def spend(self, steps: int) -> None:
        """Count steps that are about to be done.

        Raises: AutomatonLimit — they are more than what is left.
        """
        self._left -= steps
        if self._left < 0:
            raise AutomatonLimit.steps(self.limit)
