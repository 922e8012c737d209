"""Where one answer stands: decoding state and token counts, forked for a preview."""

from __future__ import annotations

from collections.abc import Sequence

from ninfer.contract import Channel, FinishReason, StopString
from ninfer.qwen_frontend.decoder import PieceTable, TextDecoder


class Position:
    """The state that a preview replaces as a whole.

    Units: ``generated`` counts every token, ``thought`` those the model produced while thinking,
           ``injected`` forced control tokens.
    """

    __slots__ = ("decoder", "finish", "generated", "injected", "matched_stop_string", "thought")

    def __init__(self, decoder: TextDecoder) -> None:
        self.decoder = decoder
        self.generated = 0
        self.thought = 0
        self.injected = 0
        self.finish: FinishReason | None = None
        self.matched_stop_string: str | None = None

    def fork(self) -> Position:
        """Return an independent position without collected deltas."""
        twin = Position(self.decoder.fork())
        twin.generated, twin.thought, twin.injected = self.generated, self.thought, self.injected
        twin.finish, twin.matched_stop_string = self.finish, self.matched_stop_string
        return twin

    def feed(self, data: bytes) -> None:
        """Decode one token's bytes and note a stop string."""
        self._stop_at(self.decoder.feed(data))

    def end(self, reason: FinishReason) -> None:
        """End here, unless the text that was held back until now completes a stop string."""
        self.finish = reason
        self._stop_at(self.decoder.finish())

    def _stop_at(self, match: StopString | None) -> None:
        if match is not None:
            self.finish, self.matched_stop_string = FinishReason.STOP_STRING, match.text


class StopRules:
    """Decides what one token does to an answer.

    Order: a stop string completed by the token's text, then the stop token, then the output limit.
    Source: reference contract section 4.
    """

    __slots__ = ("_limit_reason", "_limit_tokens", "_pieces", "_publish_stop", "_stop_ids")

    def __init__(
        self,
        pieces: PieceTable,
        stop_ids: frozenset[int],
        *,
        limit_tokens: int,
        limit_reason: FinishReason,
        publish_stop_token: bool,
    ) -> None:
        self._pieces = pieces
        self._stop_ids = stop_ids
        self._limit_tokens = limit_tokens
        self._limit_reason = limit_reason
        self._publish_stop = publish_stop_token

    @property
    def token_domain(self) -> int:
        """Return V."""
        return self._pieces.token_domain

    @property
    def limit_tokens(self) -> int:
        """Return the most tokens of this answer."""
        return self._limit_tokens

    def advance(self, position: Position, token: int) -> None:
        """Take one token of the model."""
        position.thought += position.decoder.in_reasoning
        self._take(position, token)

    def inject(self, position: Position, tokens: Sequence[int]) -> None:
        """Take forced control tokens; they are output, not thinking."""
        for token in tokens:
            position.injected += 1
            self._take(position, token)
            if position.finish is not None:
                return

    def closes_exactly(self, position: Position, closing: Sequence[int]) -> bool:
        """Return whether tokens would end the thinking without becoming content themselves."""
        probe = position.decoder.fork()
        for token in closing:
            probe.feed(self._pieces.published(token))
        content = [d for d in probe.take_deltas() if d.channel is Channel.CONTENT]
        return not probe.in_reasoning and not content

    def _take(self, position: Position, token: int) -> None:
        position.generated += 1
        is_stop = token in self._stop_ids
        if not is_stop:
            position.feed(self._pieces.published(token))
        elif self._publish_stop:
            position.feed(self._pieces.spelling(token))
        if position.finish is None and is_stop:
            position.end(FinishReason.STOP_TOKEN)
        if position.finish is None and position.generated >= self._limit_tokens:
            position.end(self._limit_reason)
