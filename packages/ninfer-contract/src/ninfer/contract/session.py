"""One request's output: matcher, decoder, stage and budget in one transaction.

A session is owned by its request; only the engine worker advances it after submit.
Source: specification 5, 6.1, 6.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from ninfer.contract.mask import Lookahead
from ninfer.contract.result import ConstraintReport, FinishReason, SessionOutput, ThinkingReport


class Channel(Enum):
    """Which published text a delta belongs to."""

    CONTENT = "content"
    REASONING = "reasoning"


class NextAction(Enum):
    """What a row needs after this round: another decode, or the forced control tokens."""

    DECODE = "decode"
    APPLY_CONTROL = "apply_control"


@dataclass(frozen=True, slots=True)
class OutputDelta:
    """Newly published text; always whole Unicode characters."""

    channel: Channel
    text: str


@dataclass(frozen=True, slots=True)
class RoundPreview:
    """What a session would do with a round's tokens; nothing is permanent yet."""

    accepted_tokens: int
    finish: FinishReason | None = None
    action: NextAction = NextAction.DECODE
    matched_stop_string: str | None = None
    prefix_execution_split_after: int | None = None


class TokenMatcher(Protocol):
    """Position in a compiled grammar with one transaction at a time.

    Between calls it is at its committed position, or holds exactly one unresolved preview.
    """

    def lookahead(self, drafts: Sequence[int], masks: memoryview) -> Lookahead:
        """Write the allowed set of every position reachable along ``drafts``.

        Math:    masks[i] = allowed(committed + drafts[:i]) for 0 <= i <= len(drafts).
        Shapes:  drafts int[K'], K' <= 63; masks int32[P, W], P > K', C-contiguous, host memory.
        Effects: masks[:K'+1] written, unreachable and dead positions with the placeholder; the
                 matcher is back at its mark on every exit.
        Raises:  PendingPreview — an unresolved preview exists; RollbackFailed.
        Source:  specification 8.1.
        """
        ...

    def preview(self, tokens: Sequence[int]) -> int:
        """Advance provisionally; return how many tokens were taken before one was refused.

        Effects: stops after an accepted EOS; the taken prefix stays provisional.
        Raises:  PendingPreview.
        """
        ...

    def commit(self) -> None:
        """Confirm the preview; allocates nothing, checks nothing, cannot fail."""
        ...

    def discard(self) -> None:
        """Return to the mark before the preview; without a preview nothing happens."""
        ...

    def feed(self, text: bytes) -> int:
        """Advance by bytes at the start of a request; return how many bytes were taken.

        Raises: PendingPreview.
        """
        ...

    @property
    def can_end(self) -> bool:
        """Return whether the text up to the current position is a whole word of the language."""
        ...

    @property
    def terminated(self) -> bool:
        """Return whether EOS was accepted."""
        ...


class OutputSession(Protocol):
    """Decodes one request's tokens; the engine knows nothing else of its format."""

    @property
    def matcher(self) -> TokenMatcher | None:
        """Return the matcher of a constrained request."""
        ...

    @property
    def remaining_model_tokens(self) -> int:
        """Return how many tokens the model may produce before a limit or forced control."""
        ...

    def preview(self, tokens: Sequence[int]) -> RoundPreview:
        """Decide what a round's tokens mean.

        Raises: PendingPreview; IntegrityError — the matcher refuses a token that was licensed by
                its mask, the round is empty, over budget, or after the end.
        """
        ...

    @property
    def control_tokens(self) -> Sequence[int]:
        """Return the fixed tokens to append when the last preview asked for APPLY_CONTROL."""
        ...

    def preview_control(self) -> RoundPreview:
        """Preview the pending control tokens through the same matcher and decoder."""
        ...

    def commit(self) -> Sequence[OutputDelta]:
        """Confirm the preview and return the text that became final; cannot fail."""
        ...

    def discard(self) -> None:
        """Drop the preview; decoder, matcher, stage and budget are as before it."""
        ...

    def finish(self, reason: FinishReason) -> tuple[Sequence[OutputDelta], SessionOutput]:
        """End the request and return the last deltas and the whole output; called once."""
        ...

    def constraint_report(self) -> ConstraintReport | None:
        """Return what was enforced, from committed state; None without a matcher."""
        ...

    def thinking_report(self) -> ThinkingReport | None:
        """Return how the thinking budget was used; None where the model does not think."""
        ...
