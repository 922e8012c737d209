"""The outcome of one row or column of an op."""

from __future__ import annotations

from enum import IntEnum

from ninfer.contract import ConstraintDeadEnd, NonFiniteLogits


class RowStatus(IntEnum):
    """What became of one row; anything but OK comes with the placeholder token."""

    OK = 0
    EMPTY_SET = 1
    """The mask allows no token."""
    NON_FINITE = 2
    """The best allowed logit is NaN or infinite."""


def require_ok(status: int, row: int) -> None:
    """Raise what a row's status means; OK returns.

    Raises: ConstraintDeadEnd — the row's mask allows nothing; NonFiniteLogits — its best allowed
            logit is NaN or infinite.
    """
    if status == RowStatus.EMPTY_SET:
        raise ConstraintDeadEnd(f"row {row}: the mask allows no token")
    if status == RowStatus.NON_FINITE:
        raise NonFiniteLogits(f"row {row}: the best allowed logit is not finite")
