"""The transaction that turns a pending batch into published output.

Invariant: every row is previewed before the program commits, sessions confirm only after it did,
and nothing is published before its session confirmed. Source: specification 6.2 and 10.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ninfer.contract import (
    CommitDecision,
    OutputDelta,
    PendingBatch,
    PendingRow,
    Program,
    RoundKind,
    RoundPreview,
    RowDisposition,
    RowMismatch,
)
from ninfer.runtime.request import EngineRequest

_FAILED = CommitDecision(0, failed=True)
_CANCELLED = CommitDecision(0, cancelled=True)


class RowOutcome(NamedTuple):
    """What a settled round means for one row; ``preview`` is None where nothing was accepted."""

    request: EngineRequest
    preview: RoundPreview | None
    disposition: RowDisposition
    deltas: Sequence[OutputDelta]


@dataclass(frozen=True, slots=True)
class SettledRound:
    """A consumed batch; seconds of the program's commit and of everything else."""

    outcomes: list[RowOutcome]
    post_seconds: float
    output_seconds: float


def settle_round(
    program: Program,
    requests: Sequence[EngineRequest],
    batch: PendingBatch,
    now: Callable[[], float],
) -> SettledRound:
    """Preview every row, commit the same prefixes in the program, then confirm the sessions.

    Effects: on a failing preview every preview is dropped and the batch aborted; on a failing
             commit every preview is dropped and nothing is confirmed. Both propagate.
    Raises:  RowMismatch — the batch or the dispositions name other rows than ``requests``.
    """
    started = now()
    previews, decisions = _preview_rows(program, requests, batch)
    before_commit = now()
    try:
        dispositions = program.commit(batch, decisions)
        _require_dispositions(decisions, dispositions)
    except BaseException:
        _discard(requests, previews)
        raise
    after_commit = now()
    outcomes = []
    for request, row, preview, disposition in zip(
        requests, batch.rows, previews, dispositions, strict=True
    ):
        deltas: Sequence[OutputDelta] = ()
        if preview is not None:
            _account(request, row, preview, batch.kind, program.shape.draft_limit)
            deltas = request.session.commit()
        outcomes.append(RowOutcome(request, preview, disposition, deltas))
    ended = now()
    return SettledRound(
        outcomes, after_commit - before_commit, before_commit - started + ended - after_commit
    )


def _preview_rows(
    program: Program, requests: Sequence[EngineRequest], batch: PendingBatch
) -> tuple[list[RoundPreview | None], list[CommitDecision]]:
    previews: list[RoundPreview | None] = []
    decisions: list[CommitDecision] = []
    try:
        _require_members(requests, batch)
        for request, row in zip(requests, batch.rows, strict=True):
            preview = _preview_row(request, row, batch.kind)
            previews.append(preview)
            decisions.append(_decide(row, preview))
    except BaseException:
        _discard(requests, previews)
        program.abort(batch)
        raise
    return previews, decisions


def _preview_row(request: EngineRequest, row: PendingRow, kind: RoundKind) -> RoundPreview | None:
    if row.failed or request.outlet.is_cancelled:
        return None
    session = request.session
    if kind is not RoundKind.CONTROL:
        return session.preview(row.tokens)
    if tuple(session.control_tokens) != row.tokens:
        raise RowMismatch("the appended control tokens are not the session's")
    return session.preview_control()


def _decide(row: PendingRow, preview: RoundPreview | None) -> CommitDecision:
    if preview is None:
        return _FAILED if row.failed else _CANCELLED
    decision = CommitDecision(
        preview.accepted_tokens,
        terminal=preview.finish is not None,
        prefix_execution_split_after=preview.prefix_execution_split_after,
    )
    if not decision.is_valid_for(len(row.tokens)):
        raise RowMismatch(
            f"a preview accepts {preview.accepted_tokens} of {len(row.tokens)} tokens"
            f" of a {'terminal' if preview.finish else 'nonterminal'} row"
        )
    return decision


def _discard(requests: Sequence[EngineRequest], previews: Sequence[RoundPreview | None]) -> None:
    for request, preview in zip(requests, previews, strict=False):
        if preview is not None:
            request.session.discard()


def _require_members(requests: Sequence[EngineRequest], batch: PendingBatch) -> None:
    expected = [request.sequence for request in requests]
    found = [row.sequence for row in batch.rows]
    if expected != found:
        raise RowMismatch(f"the batch holds sequences {found}, not {expected}")


def _require_dispositions(
    decisions: Sequence[CommitDecision], dispositions: Sequence[RowDisposition]
) -> None:
    expected = [_disposition(decision) for decision in decisions]
    if expected != list(dispositions):
        raise RowMismatch(f"the program left its rows {list(dispositions)}, not {expected}")


def _disposition(decision: CommitDecision) -> RowDisposition:
    if decision.failed:
        return RowDisposition.FAILED_RELEASED
    if decision.cancelled:
        return RowDisposition.CANCELLED_RELEASED
    return RowDisposition.FINISHABLE if decision.terminal else RowDisposition.ACTIVE


def _account(
    request: EngineRequest,
    row: PendingRow,
    preview: RoundPreview,
    kind: RoundKind,
    draft_limit: int,
) -> None:
    request.tokens.extend(row.tokens[: preview.accepted_tokens])
    if preview.matched_stop_string is not None:
        request.matched_stop_string = preview.matched_stop_string
    if kind is not RoundKind.DECODE or not draft_limit:
        return
    tally, counts = request.speculation, row.speculation
    if not counts.extent:
        tally.fallback_steps += 1
        return
    tally.rounds += 1
    tally.drafted_tokens += counts.extent
    # Behind an end the program may have taken drafts that nobody gets, some against a placeholder.
    accepted = min(counts.accepted, preview.accepted_tokens)
    tally.accepted_tokens += accepted
    if not tally.accepted_per_position:
        tally.accepted_per_position = [0] * draft_limit
    for position in range(accepted):
        tally.accepted_per_position[position] += 1
