"""The row rules of a commit."""

from __future__ import annotations

from collections.abc import Sequence

from ninfer.contract import CommitDecision, PendingBatch, RowDisposition, RowMismatch


def check_decisions(batch: PendingBatch, decisions: Sequence[CommitDecision]) -> None:
    """Check that every row has a decision that its outcome allows.

    Raises: RowMismatch — another number of decisions, a prefix that the row rules forbid, or
            accepted tokens of a row that failed.
    """
    if len(decisions) != len(batch.rows):
        raise RowMismatch(f"commit: {len(decisions)} decisions for {len(batch.rows)} rows")
    for index, (row, decision) in enumerate(zip(batch.rows, decisions, strict=True)):
        if not decision.is_valid_for(len(row.tokens)):
            raise RowMismatch(
                f"commit: row {index}: {decision} for {len(row.tokens)} produced tokens"
            )


def disposition_of(decision: CommitDecision) -> RowDisposition:
    """Return what becomes of a row."""
    if decision.cancelled:
        return RowDisposition.CANCELLED_RELEASED
    if decision.failed:
        return RowDisposition.FAILED_RELEASED
    return RowDisposition.FINISHABLE if decision.terminal else RowDisposition.ACTIVE
