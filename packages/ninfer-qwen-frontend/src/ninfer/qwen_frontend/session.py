"""One request's output session: matcher, decoder, stage and budgets in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

from ninfer.contract import (
    Channel,
    ConstraintReport,
    FinishReason,
    IntegrityError,
    NextAction,
    OutputDelta,
    PendingPreview,
    RoundPreview,
    SessionOutput,
    ThinkingReport,
    TokenMatcher,
)
from ninfer.qwen_frontend.budget import ThinkingBudget
from ninfer.qwen_frontend.guarantee import Guarantee
from ninfer.qwen_frontend.position import Position, StopRules
from ninfer.qwen_frontend.publication import ContentPublisher


class Session:
    """Implements ``ninfer.contract.OutputSession``.

    A preview forks the position and advances the matcher provisionally; ``commit`` swaps the fork
    in and confirms the matcher, ``discard`` drops both. Nothing else is ever provisional.
    """

    __slots__ = (
        "_budget",
        "_control",
        "_guarantee",
        "_is_closed",
        "_position",
        "_preview",
        "_publisher",
        "_rules",
        "_seconds",
        "_texts",
        "_thinks",
    )

    def __init__(
        self,
        position: Position,
        rules: StopRules,
        publisher: ContentPublisher,
        *,
        guarantee: Guarantee | None = None,
        budget: ThinkingBudget | None = None,
    ) -> None:
        self._position = position
        self._rules = rules
        self._publisher = publisher
        self._guarantee = guarantee
        self._thinks = budget is not None
        self._budget = budget or ThinkingBudget()
        self._preview: Position | None = None
        self._control: tuple[int, ...] = ()
        self._texts: dict[Channel, list[str]] = {channel: [] for channel in Channel}
        self._seconds = 0.0
        self._is_closed = False

    @property
    def matcher(self) -> TokenMatcher | None:
        """Return the matcher of a constrained request."""
        return None if self._guarantee is None else self._guarantee.matcher

    @property
    def remaining_model_tokens(self) -> int:
        """Return how many tokens the model may produce before a limit or forced control."""
        position = self._position
        if position.finish is not None or self._control:
            return 0
        left = self._rules.limit_tokens - position.generated
        if self._budget.cap is None or not position.decoder.in_reasoning:
            return left
        # At the cap without control pending, the model first finishes a character.
        return min(left, max(1, self._budget.cap - position.thought))

    def preview(self, tokens: Sequence[int]) -> RoundPreview:
        """Decide what a round's tokens mean."""
        self._require_room(tokens)
        preview = self._position.fork()
        accepted = 0
        for token in tokens:
            if not 0 <= token < self._rules.token_domain:
                raise IntegrityError(f"token {token} is outside {self._rules.token_domain} ids")
            self._rules.advance(preview, token)
            accepted += 1
            if preview.finish is not None:
                break
        self._advance_matcher(tokens[:accepted])
        self._preview = preview
        return RoundPreview(
            accepted,
            preview.finish,
            NextAction.APPLY_CONTROL if self._needs_control(preview) else NextAction.DECODE,
            preview.matched_stop_string,
        )

    @property
    def control_tokens(self) -> Sequence[int]:
        """Return the fixed tokens to append when the last preview asked for APPLY_CONTROL."""
        if self._preview is not None and self._needs_control(self._preview):
            return self._closing_for(self._preview)
        return self._control

    def preview_control(self) -> RoundPreview:
        """Preview the pending control tokens through the same matcher and decoder."""
        self._require_no_preview()
        if not self._control:
            raise IntegrityError("no control tokens are pending")
        preview = self._position.fork()
        self._rules.inject(preview, self._control)
        self._advance_matcher(self._control)
        self._preview = preview
        return RoundPreview(
            preview.injected - self._position.injected,
            preview.finish,
            matched_stop_string=preview.matched_stop_string,
        )

    def commit(self) -> Sequence[OutputDelta]:
        """Confirm the preview and return the text that became final."""
        preview = self._preview
        if preview is None:
            return ()
        self._control = self._closing_for(preview) if self._needs_control(preview) else ()
        self._position, self._preview = preview, None
        if self._guarantee is not None:
            self._guarantee.matcher.commit()
        return self._publish(preview.decoder.take_deltas())

    def discard(self) -> None:
        """Drop the preview; decoder, matcher, stage and budget are as before it."""
        self._preview = None
        if self._guarantee is not None:
            self._guarantee.matcher.discard()

    def finish(self, reason: FinishReason) -> tuple[Sequence[OutputDelta], SessionOutput]:
        """End the request and return the last deltas and the whole output."""
        self._require_no_preview()
        if self._is_closed:
            raise IntegrityError("the session was finished before")
        self._is_closed = True
        deltas = self._last_deltas()
        ending = self._publisher.finish(reason)
        if ending.text:
            self._texts[Channel.CONTENT].append(ending.text)
            deltas = (*deltas, OutputDelta(Channel.CONTENT, ending.text))
        output = SessionOutput(
            content="".join(self._texts[Channel.CONTENT]),
            reasoning="".join(self._texts[Channel.REASONING]),
            tool_calls=ending.tool_calls,
            tool_call_parse=ending.tool_call_parse,
            reasoning_tokens=self._position.thought,
            matched_stop_string=self._position.matched_stop_string,
        )
        return deltas, output

    def constraint_report(self) -> ConstraintReport | None:
        """Return what was enforced, from committed state."""
        if self._guarantee is None:
            return None
        self._require_no_preview()
        return self._guarantee.report(self._publisher.branch, self._seconds)

    def thinking_report(self) -> ThinkingReport | None:
        """Return how the thinking budget was used; None where the answer does not think."""
        if not self._thinks:
            return None
        return self._budget.report(self._position.thought, self._position.injected)

    def _require_no_preview(self) -> None:
        if self._preview is not None:
            raise PendingPreview("the session has an unresolved preview")

    def _require_room(self, tokens: Sequence[int]) -> None:
        self._require_no_preview()
        if self._is_closed or self._position.finish is not None:
            raise IntegrityError("the answer has ended, but a round followed")
        if self._control:
            raise IntegrityError("control tokens are pending, but a model round came")
        if not tokens:
            raise IntegrityError("a round without tokens")
        if len(tokens) > self.remaining_model_tokens:
            raise IntegrityError(
                f"a round of {len(tokens)} tokens, but {self.remaining_model_tokens} were left"
            )

    def _advance_matcher(self, tokens: Sequence[int]) -> None:
        if self._guarantee is None:
            return
        started = perf_counter()
        taken = self._guarantee.matcher.preview(tokens)
        self._seconds += perf_counter() - started
        if taken != len(tokens):
            self._guarantee.matcher.discard()
            raise IntegrityError(
                f"the matcher refuses token {tokens[taken]} at {taken} of a licensed round"
            )

    def _needs_control(self, position: Position) -> bool:
        cap = self._budget.cap
        return (
            cap is not None
            and position.finish is None
            and position.decoder.in_reasoning
            and position.thought >= cap
            and not position.decoder.is_inside_character
            and self._rules.limit_tokens - position.generated > len(self._closing_for(position))
        )

    def _closing_for(self, position: Position) -> tuple[int, ...]:
        """Return the control text that ends the thinking with its last byte, not before."""
        for closing in self._budget.closings:
            if self._rules.closes_exactly(position, closing):
                return closing
        raise IntegrityError("no control text closes the thinking here")

    def _last_deltas(self) -> tuple[OutputDelta, ...]:
        decoder = self._position.decoder
        if self._position.finish is None:
            # A stop string in what was held back cuts the text; it is not what ended the answer.
            decoder.finish()
        return self._publish(decoder.take_deltas())

    def _publish(self, deltas: Sequence[OutputDelta]) -> tuple[OutputDelta, ...]:
        published = []
        for delta in deltas:
            is_content = delta.channel is Channel.CONTENT
            text = self._publisher.feed(delta.text) if is_content else delta.text
            if text:
                self._texts[delta.channel].append(text)
                published.append(OutputDelta(delta.channel, text))
        return tuple(published)
