"""How long an answer and its thinking may be."""

from __future__ import annotations

from dataclasses import dataclass

from ninfer.contract import (
    FinishReason,
    InvalidOption,
    OptionPath,
    ThinkingBudgetCapacity,
    ThinkingReport,
)

BUDGET_OPTION = "execution.thinking.budget_tokens"


@dataclass(frozen=True, slots=True)
class OutputLimit:
    """The most tokens of one answer, and what running into it is called.

    Units: tokens, injected control tokens included.
    """

    tokens: int
    reason: FinishReason = FinishReason.OUTPUT_LIMIT


@dataclass(frozen=True, slots=True)
class ThinkingBudget:
    """The most tokens a model may think before its thinking is closed for it.

    ``cap`` is None where nothing has to be forced: no budget was asked for, or the output limit
    comes first. ``closings`` are the control texts as tokens: the full sentence, then the rests of
    the close for thinking that was already closing by itself.
    """

    requested: int | None = None
    cap: int | None = None
    closings: tuple[tuple[int, ...], ...] = ()

    def report(self, thought: int, injected: int) -> ThinkingReport:
        """Return how the budget was used."""
        return ThinkingReport(self.requested, self.cap, thought, injected, injected > 0)


def require_budget(requested: int | None) -> None:
    """Check a thinking budget by itself, also where the answer does not think.

    Raises: InvalidOption — the budget is less than 1.
    """
    if requested is not None and requested < 1:
        raise InvalidOption(f"{requested} is less than 1", location=OptionPath(BUDGET_OPTION))


def plan_budget(
    requested: int | None, limit: OutputLimit, closings: tuple[tuple[int, ...], ...]
) -> ThinkingBudget:
    """Return the budget of an answer that starts by thinking.

    Math:   limit ≤ requested ⇒ the output limit comes first and nothing is forced; otherwise
            limit − requested ≥ control tokens + 1 must hold.
    Raises: InvalidOption — the budget is less than 1; ThinkingBudgetCapacity — no room is left.
    Source: specification 5.2; reference contract section 4.
    """
    if requested is None:
        return ThinkingBudget()
    require_budget(requested)
    if limit.tokens <= requested:
        return ThinkingBudget(requested)
    needed = len(closings[0]) + 1
    if limit.tokens - requested < needed:
        raise ThinkingBudgetCapacity(
            f"{limit.tokens} output tokens leave {limit.tokens - requested} after thinking, "
            f"but closing it and one token of answer take {needed}",
            location=OptionPath(BUDGET_OPTION),
        )
    return ThinkingBudget(requested, requested, closings)
