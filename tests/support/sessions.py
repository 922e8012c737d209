"""Output sessions over small vocabularies, and a matcher that replays from scratch.

``ReplayMatcher`` implements the matcher protocol by two predicates over the whole byte history, so
no transaction can hide in shared state.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ninfer.contract import (
    PLACEHOLDER_TOKEN,
    CacheOutcome,
    Channel,
    FinishReason,
    Lookahead,
    NextAction,
    OutputDelta,
    PendingPreview,
    SessionOutput,
    StopString,
    TokenClass,
    TokenVocabulary,
    mask_bit,
)
from ninfer.qwen_frontend.budget import ThinkingBudget
from ninfer.qwen_frontend.decoder import PieceTable, TextDecoder
from ninfer.qwen_frontend.guarantee import Guarantee
from ninfer.qwen_frontend.position import Position, StopRules
from ninfer.qwen_frontend.publication import ContentPublisher, PlainContent
from ninfer.qwen_frontend.session import Session
from ninfer.qwen_frontend.stages import ContentStage, Stage

EXTRA_PIECES = (
    b"</think>",
    b"\n</think>\n\n",
    b">\n\n ",
    b"</",
    b"think",
    b"\n\n",
    b"</think>\n\n{",
    "上".encode(),
    "上".encode()[:2],
    "海！".encode(),
    b"<tool_call>",
    b"</tool_call>",
    b"stop",
    b"END",
)


def byte_vocabulary(extra: Sequence[bytes] = EXTRA_PIECES) -> TokenVocabulary:
    """Return the 256 bytes, some longer tokens, two EOS marks and one control mark at the end."""
    pieces = [*(bytes([value]) for value in range(256)), *extra]
    marks = [b"<|im_end|>", b"<|endoftext|>", b"<|im_start|>"]
    first = len(pieces)
    return TokenVocabulary.build([*pieces, *marks], eos=(first, first + 1), control=(first + 2,))


def spell(vocabulary: TokenVocabulary, text: bytes | str) -> list[int]:
    """Return the text as single-byte tokens of a byte vocabulary."""
    return list(text.encode() if isinstance(text, str) else text)


class ReplayMatcher:
    """A matcher whose position is nothing but the committed and the provisional bytes."""

    def __init__(
        self,
        vocabulary: TokenVocabulary,
        is_prefix: Callable[[bytes], bool],
        is_word: Callable[[bytes], bool],
    ) -> None:
        self._vocabulary = vocabulary
        self._is_prefix = is_prefix
        self._is_word = is_word
        self._committed = (b"", False)
        self._provisional: tuple[bytes, bool] | None = None

    @property
    def can_end(self) -> bool:
        text, ended = self._now
        return ended or self._is_word(text)

    @property
    def terminated(self) -> bool:
        return self._now[1]

    def lookahead(self, drafts: Sequence[int], masks: memoryview) -> Lookahead:
        if self._provisional is not None:
            raise PendingPreview("lookahead during a preview")
        words = masks.cast("B").cast(
            "i", (len(drafts) + 1, len(masks.cast("B")) // 4 // (len(drafts) + 1))
        )
        state, reachable, dead, filled = self._committed, 0, 0, 0
        is_live = True
        for index in range(len(drafts) + 1):
            allowed = self.allowed(state) if is_live else set()
            reachable += is_live
            filled += bool(allowed)
            dead |= (is_live and not allowed) << index
            for word in range(words.shape[1]):
                words[index, word] = 0
            for token in allowed or {PLACEHOLDER_TOKEN}:
                word, bit = mask_bit(token)
                words[index, word] |= bit if bit < 1 << 31 else bit - (1 << 32)
            if index < len(drafts) and is_live:
                is_live = drafts[index] in allowed
                state = self._step(state, drafts[index]) or state
                is_live = is_live and not state[1]
        return Lookahead(len(drafts) + 1, reachable, dead, filled)

    def preview(self, tokens: Sequence[int]) -> int:
        if self._provisional is not None:
            raise PendingPreview("preview during a preview")
        state, taken = self._committed, 0
        for token in tokens:
            following = self._step(state, token)
            if following is None:
                break
            state, taken = following, taken + 1
        self._provisional = state
        return taken

    def commit(self) -> None:
        if self._provisional is not None:
            self._committed, self._provisional = self._provisional, None

    def discard(self) -> None:
        self._provisional = None

    def feed(self, text: bytes) -> int:
        before = self._committed[0]
        taken = next(
            (n for n in range(len(text)) if not self._is_prefix(before + text[: n + 1])), len(text)
        )
        self._committed = (before + text[:taken], False)
        return taken

    def allowed(self, state: tuple[bytes, bool] | None = None) -> set[int]:
        state = state or self._now
        return {t for t in range(self._vocabulary.token_domain) if self._step(state, t)}

    @property
    def _now(self) -> tuple[bytes, bool]:
        return self._provisional or self._committed

    def _step(self, state: tuple[bytes, bool], token: int) -> tuple[bytes, bool] | None:
        text, ended = state
        kind = self._vocabulary.classes[token]
        if ended or kind in (TokenClass.CONTROL, TokenClass.UNUSED):
            return None
        if kind == TokenClass.EOS:
            return (text, True) if self._is_word(text) else None
        text += self._vocabulary.pieces[token]
        return (text, False) if self._is_prefix(text) else None


def words_matcher(vocabulary: TokenVocabulary, words: Sequence[str]) -> ReplayMatcher:
    """Return a matcher of a finite language."""
    spelled = [word.encode() for word in words]
    return ReplayMatcher(
        vocabulary,
        lambda text: any(word.startswith(text) for word in spelled),
        lambda text: text in spelled,
    )


def thinking_matcher(
    vocabulary: TokenVocabulary, words: Sequence[str], close: bytes = b"\n</think>\n\n"
) -> ReplayMatcher:
    """Return a matcher of free thinking, the close, and a finite language of content."""
    inner = words_matcher(vocabulary, words)

    def split(text: bytes) -> bytes | None:
        _, found, after = text.partition(close)
        return after if found else None

    return ReplayMatcher(
        vocabulary,
        lambda text: (rest := split(text)) is None or inner._is_prefix(rest),
        lambda text: (rest := split(text)) is not None and inner._is_word(rest),
    )


def build_session(
    vocabulary: TokenVocabulary,
    *,
    stage: Stage | None = None,
    matcher: ReplayMatcher | None = None,
    stops: Sequence[StopString] = (),
    stop_ids: Sequence[int] = (),
    limit: int = 1000,
    limit_reason: FinishReason = FinishReason.OUTPUT_LIMIT,
    budget: ThinkingBudget | None = None,
    publisher: ContentPublisher | None = None,
    publish_stop_token: bool = False,
    preserve_specials: bool = False,
) -> Session:
    """Return a session from its parts, with the vocabulary's EOS set as stop tokens."""
    rules = StopRules(
        PieceTable(vocabulary, preserve_specials=preserve_specials),
        frozenset((*vocabulary.eos_ids, *stop_ids)),
        limit_tokens=limit,
        limit_reason=limit_reason,
        publish_stop_token=publish_stop_token,
    )
    return Session(
        Position(TextDecoder(stage or ContentStage(), stops)),
        rules,
        publisher or PlainContent(),
        guarantee=None if matcher is None else Guarantee(matcher, CacheOutcome.BUILT),
        budget=budget,
    )


@dataclass(frozen=True)
class Transcript:
    """Everything one driven session published."""

    content: str
    reasoning: str
    finish: FinishReason
    accepted: int
    injected: int
    output: SessionOutput


def drive(session: Session, tokens: Sequence[int], rounds: Sequence[int] = ()) -> Transcript:
    """Feed a token stream in rounds of the given sizes (1 where they run out) until it ends.

    A pending control is applied between rounds. A stream that runs out is cancelled.
    """
    deltas: list[OutputDelta] = []
    sizes = iter(rounds)
    accepted = injected = at = 0
    finish = None
    while finish is None and at < len(tokens):
        size = min(next(sizes, 1), session.remaining_model_tokens, len(tokens) - at)
        preview = session.preview(tokens[at : at + size])
        at += preview.accepted_tokens
        accepted += preview.accepted_tokens
        finish = preview.finish
        deltas += session.commit()
        if preview.action is NextAction.APPLY_CONTROL:
            injected += len(session.control_tokens)
            finish = session.preview_control().finish
            deltas += session.commit()
    finish = finish or FinishReason.CANCELLED
    last, output = session.finish(finish)
    deltas += last
    return Transcript(
        content="".join(d.text for d in deltas if d.channel is Channel.CONTENT),
        reasoning="".join(d.text for d in deltas if d.channel is Channel.REASONING),
        finish=finish,
        accepted=accepted,
        injected=injected,
        output=output,
    )
