"""What the operations on closed forms need from the reduction that runs them, and its limits."""

from __future__ import annotations

from typing import Protocol

from ninfer.contract.location import JsonPointer
from ninfer.text.schema.formula import Formula, Formulas
from ninfer.text.schema.shapes import Value
from ninfer.text.schema.strings import StringOracle

CONJUNCTION_LIMIT = 16_384
"""How many pairs of closed forms one reduction may intersect."""

MEMBER_LIMIT = 196_608
"""How many members, items, strings and number pieces these intersections may look at together."""

DIVISOR_LIMIT = 2_048
"""What the divisors of one document may come to: each is as many states as it is large."""

COMPARISON_LIMIT = 65_536
"""How many pairs of forms and shapes one reduction may compare for disjointness."""

DEPTH_LIMIT = 100
"""How deep references and combinations may lean on each other without a step into the value."""


class NoClosedForm(Exception):
    """A negation has no closed form; the keyword that asked for it is refused."""


class Context(Protocol):
    """One running reduction."""

    @property
    def formulas(self) -> Formulas:
        """Return the interned formulas."""
        ...

    @property
    def oracle(self) -> StringOracle:
        """Return the string automata."""
        ...

    @property
    def place(self) -> JsonPointer:
        """Return where the keyword that is being applied stands."""
        ...

    def reduce(self, formula: Formula) -> Value:
        """Return the closed form of a formula."""
        ...

    def reduce_if_possible(self, formula: Formula) -> Value | None:
        """Return the closed form, or None where it is being made or has none."""
        ...

    def deny(self, formula: Formula, place: JsonPointer | None = None) -> Formula:
        """Return the negation, remembering which keyword asked for it."""
        ...

    def is_hollow(self, formula: Formula) -> bool:
        """Return whether a formula is provably without a value; False where that is unknown."""
        ...

    def spend_members(self, members: int) -> None:
        """Count the parts of two forms that an intersection looks at.

        Raises: UnsupportedSchema — the limit is reached.
        """
        ...

    def spend_divisor(self, divisor: int) -> None:
        """Count a divisor by its size.

        Raises: UnsupportedSchema — the limit is reached.
        """
        ...

    def spend_conjunction(self) -> None:
        """Count one intersection.

        Raises: UnsupportedSchema — the limit is reached.
        """
        ...

    def spend_comparison(self) -> None:
        """Count one comparison.

        Raises: UnsupportedSchema — the limit is reached.
        """
        ...
