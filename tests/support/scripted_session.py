"""Sessions and matchers whose languages are functions of the token history."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ninfer.contract import (
    CacheOutcome,
    Channel,
    ConstraintBranch,
    ConstraintReport,
    FinishReason,
    IntegrityError,
    Lookahead,
    NextAction,
    OutputDelta,
    PendingPreview,
    RoundPreview,
    SessionOutput,
    ThinkingReport,
    mask_bit,
)

EOS = 0
CLOSE = 2
CONTROL = (5, 6, CLOSE)

Rule = Callable[[tuple[int, ...]], Collection[int]]
"""The tokens that may follow a history; an empty set is a dead end."""


class RuleMatcher:
    """Implements contract.TokenMatcher over a rule; refuses every wrong use."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._committed: tuple[int, ...] = ()
        self._preview: tuple[int, ...] | None = None

    def lookahead(self, drafts: Sequence[int], masks: memoryview) -> Lookahead:
        self._require_stable()
        positions, words = masks.shape
        prefix, dead_ends, filled, reachable = self._committed, 0, 0, 0
        is_alive = True
        for position in range(len(drafts) + 1):
            allowed = self._allowed(prefix) if is_alive else ()
            if is_alive:
                reachable = position + 1
                filled += 1
            row = [0] * words
            for token in allowed or (0,):
                word, bit = mask_bit(token)
                row[word] |= bit
            for word, value in enumerate(row):
                masks[position, word] = value - (value >> 31 << 32)
            if is_alive and not allowed:
                dead_ends |= 1 << position
            if position == len(drafts):
                break
            draft = drafts[position]
            is_alive = is_alive and draft in allowed and draft != EOS
            prefix = (*prefix, draft)
        return Lookahead(positions, reachable, dead_ends, filled)

    def preview(self, tokens: Sequence[int]) -> int:
        self._require_stable()
        position, taken = self._committed, 0
        for token in tokens:
            if token not in self._allowed(position):
                break
            position, taken = (*position, token), taken + 1
        self._preview = position
        return taken

    def commit(self) -> None:
        if self._preview is not None:
            self._committed, self._preview = self._preview, None

    def discard(self) -> None:
        self._preview = None

    def feed(self, text: bytes) -> int:
        raise NotImplementedError("scripted languages have no bytes")

    @property
    def can_end(self) -> bool:
        return EOS in self._allowed(self._committed)

    @property
    def terminated(self) -> bool:
        return EOS in self._committed

    def _allowed(self, prefix: tuple[int, ...]) -> Collection[int]:
        return () if EOS in prefix else set(self._rule(prefix))

    def _require_stable(self) -> None:
        if self._preview is not None:
            raise PendingPreview("an unresolved preview exists")


class ScriptedSession:
    """Implements contract.OutputSession: tokens print as ``<id>``, token 0 ends the answer.

    With ``thinks`` the answer starts as reasoning until token 2; ``budget`` forces control tokens.
    Entries of ``log`` name the request, so that orders over a batch can be read.
    """

    def __init__(
        self,
        *,
        output_limit: int,
        limit_reason: FinishReason = FinishReason.OUTPUT_LIMIT,
        rule: Rule | None = None,
        thinks: bool = False,
        budget: int | None = None,
        log: list[str] | None = None,
        refuse_after: int | None = None,
    ) -> None:
        self._matcher = None if rule is None else RuleMatcher(rule)
        self._limit = output_limit
        self._limit_reason = limit_reason
        self._budget = budget if thinks else None
        self._in_reasoning = thinks
        self._log = [] if log is None else log
        self._refuse_after = refuse_after
        self._tokens: list[int] = []
        self._thought = 0
        self._injected = 0
        self._needs_control = False
        self._preview: tuple[list[int], bool, bool] | None = None
        self._texts = dict.fromkeys(Channel, "")
        self._is_finished = False

    @property
    def matcher(self) -> RuleMatcher | None:
        return self._matcher

    @property
    def remaining_model_tokens(self) -> int:
        left = self._limit - len(self._tokens)
        if self._budget is not None and self._in_reasoning:
            left = min(left, max(1, self._budget - self._thought))
        return left

    def preview(self, tokens: Sequence[int]) -> RoundPreview:
        if self._needs_control:
            raise IntegrityError("control tokens are pending, but a model round came")
        if len(tokens) > self.remaining_model_tokens:
            raise IntegrityError("a round over budget")
        if self._refuse_after is not None and len(self._tokens) >= self._refuse_after:
            self._log.append("refuse")
            raise IntegrityError("the matcher refuses a licensed token")
        return self._advance(tokens, is_control=False)

    @property
    def control_tokens(self) -> Sequence[int]:
        return CONTROL if self._needs_control else ()

    def preview_control(self) -> RoundPreview:
        if not self._needs_control:
            raise IntegrityError("no control tokens are pending")
        return self._advance(CONTROL, is_control=True)

    def commit(self) -> Sequence[OutputDelta]:
        assert self._preview is not None
        self._log.append("confirm")
        taken, is_control, needs_control = self._preview
        self._preview = None
        if self._matcher is not None:
            self._matcher.commit()
        deltas = []
        for token in taken:
            self._tokens.append(token)
            self._thought += self._in_reasoning and not is_control
            self._injected += is_control
            channel = Channel.REASONING if self._in_reasoning else Channel.CONTENT
            self._in_reasoning = self._in_reasoning and token != CLOSE
            if token != EOS:
                deltas.append(OutputDelta(channel, f"<{token}>"))
                self._texts[channel] += f"<{token}>"
        self._needs_control = needs_control
        return deltas

    def discard(self) -> None:
        self._log.append("discard")
        self._preview = None
        if self._matcher is not None:
            self._matcher.discard()

    def finish(self, reason: FinishReason) -> tuple[Sequence[OutputDelta], SessionOutput]:
        if self._is_finished or self._preview is not None:
            raise IntegrityError("finished twice, or with a preview")
        self._is_finished = True
        self._log.append(f"finish {reason.value}")
        return (), SessionOutput(
            self._texts[Channel.CONTENT],
            self._texts[Channel.REASONING],
            reasoning_tokens=self._thought,
        )

    def constraint_report(self) -> ConstraintReport | None:
        if self._matcher is None:
            return None
        return ConstraintReport(
            ConstraintBranch.CONTENT,
            self._matcher.can_end or self._matcher.terminated,
            self._matcher.terminated,
            CacheOutcome.BUILT,
        )

    def thinking_report(self) -> ThinkingReport | None:
        if self._budget is None:
            return None
        return ThinkingReport(
            self._budget, self._budget, self._thought, self._injected, self._injected > 0
        )

    def _advance(self, tokens: Sequence[int], *, is_control: bool) -> RoundPreview:
        if self._preview is not None or not tokens:
            raise PendingPreview("an unresolved preview exists, or the round is empty")
        self._log.append("preview")
        accepted = tokens[: tokens.index(EOS) + 1] if EOS in tokens else tokens
        accepted = list(accepted)
        if self._matcher is not None and self._matcher.preview(accepted) != len(accepted):
            self._matcher.discard()
            raise IntegrityError("the matcher refuses a licensed token")
        finish = None
        if accepted[-1] == EOS:
            finish = FinishReason.STOP_TOKEN
        elif len(self._tokens) + len(accepted) >= self._limit:
            finish = self._limit_reason
        needs_control = finish is None and self._hits_budget(accepted, is_control=is_control)
        self._preview = (accepted, is_control, needs_control)
        action = NextAction.APPLY_CONTROL if needs_control else NextAction.DECODE
        return RoundPreview(len(accepted), finish, action)

    def _hits_budget(self, accepted: list[int], *, is_control: bool) -> bool:
        if self._budget is None or is_control or not self._in_reasoning or CLOSE in accepted:
            return False
        room = self._limit - len(self._tokens) - len(accepted)
        return self._thought + len(accepted) >= self._budget and room > len(CONTROL)
