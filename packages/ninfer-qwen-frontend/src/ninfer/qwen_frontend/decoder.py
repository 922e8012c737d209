"""Tokens become channel text: bytes, stage, characters and stop strings, in that order."""

from __future__ import annotations

from collections.abc import Sequence

from ninfer.contract import Channel, OutputDelta, StopString, TokenClass, TokenVocabulary
from ninfer.qwen_frontend.stages import Segment, Stage
from ninfer.qwen_frontend.stops import DeclaredStop, StopScanner
from ninfer.qwen_frontend.utf8 import Utf8Decoder

_CHANNELS = (Channel.REASONING, Channel.CONTENT)


class PieceTable:
    """The bytes each token publishes.

    Text tokens publish their bytes, unused ids none, and marks theirs only when specials are
    preserved. Stop tokens are decided by the session.
    """

    __slots__ = ("_preserve_specials", "_vocabulary")

    def __init__(self, vocabulary: TokenVocabulary, *, preserve_specials: bool) -> None:
        self._vocabulary = vocabulary
        self._preserve_specials = preserve_specials

    @property
    def token_domain(self) -> int:
        """Return V."""
        return self._vocabulary.token_domain

    def published(self, token: int) -> bytes:
        """Return the bytes of a token inside an answer."""
        if self._vocabulary.classes[token] == TokenClass.TEXT or self._preserve_specials:
            return self._vocabulary.pieces[token]
        return b""

    def spelling(self, token: int) -> bytes:
        """Return the bytes of a token whatever its class."""
        return self._vocabulary.pieces[token]


class TextDecoder:
    """The decoding state of one answer; a fork is a cheap copy that shares nothing mutable.

    Math: deltas collected so far = stop scan of the decoded characters of each channel's bytes. The
          reasoning channel is flushed as soon as the stage leaves it.
    """

    __slots__ = ("_channels", "_deltas", "_stage")

    def __init__(self, stage: Stage, stops: Sequence[StopString]) -> None:
        declared = [DeclaredStop(order, stop) for order, stop in enumerate(stops)]
        self._stage = stage
        self._channels = {
            channel: (Utf8Decoder(), _scanner(declared, channel)) for channel in _CHANNELS
        }
        self._deltas: list[OutputDelta] = []

    def fork(self) -> TextDecoder:
        """Return an independent decoder at the same position, without collected deltas."""
        twin = object.__new__(TextDecoder)
        twin._stage = self._stage.fork()
        twin._channels = {
            channel: (utf8.fork(), scanner.fork())
            for channel, (utf8, scanner) in self._channels.items()
        }
        twin._deltas = []
        return twin

    @property
    def in_reasoning(self) -> bool:
        """Return whether the answer is still thinking."""
        return self._stage.in_reasoning

    @property
    def is_inside_character(self) -> bool:
        """Return whether a character of the open channel is unfinished."""
        channel = Channel.REASONING if self.in_reasoning else Channel.CONTENT
        return self._channels[channel][0].is_inside_character

    def feed(self, data: bytes) -> StopString | None:
        """Decode one token's bytes; return the stop string that ends the answer here."""
        was_reasoning = self._stage.in_reasoning
        segments = self._stage.feed(data)
        has_closed = was_reasoning and not self._stage.in_reasoning
        return self._publish(segments, has_closed=has_closed)

    def finish(self) -> StopString | None:
        """Publish everything held back; return a stop string that the last characters complete."""
        match = self._publish(self._stage.finish(), has_closed=False)
        for channel in _CHANNELS:
            match = match or self._close(channel)
        return match

    def take_deltas(self) -> tuple[OutputDelta, ...]:
        """Return the text that became final, at most one delta a channel, and forget it."""
        texts = dict.fromkeys(_CHANNELS, "")
        for delta in self._deltas:
            texts[delta.channel] += delta.text
        self._deltas = []
        return tuple(OutputDelta(channel, text) for channel, text in texts.items() if text)

    def _publish(self, segments: Sequence[Segment], *, has_closed: bool) -> StopString | None:
        for segment in segments:
            if has_closed and segment.channel is Channel.CONTENT:
                has_closed = False
                if (match := self._close(Channel.REASONING)) is not None:
                    return match
            utf8, _ = self._channels[segment.channel]
            if (match := self._scan(segment.channel, utf8.decode(segment.data))) is not None:
                return match
        return self._close(Channel.REASONING) if has_closed else None

    def _scan(self, channel: Channel, text: str) -> StopString | None:
        final, match = self._channels[channel][1].feed(text)
        if final:
            self._deltas.append(OutputDelta(channel, final))
        return match

    def _close(self, channel: Channel) -> StopString | None:
        utf8, scanner = self._channels[channel]
        if (match := self._scan(channel, utf8.finish())) is not None:
            return match
        if held := scanner.finish():
            self._deltas.append(OutputDelta(channel, held))
        return None


def _scanner(stops: Sequence[DeclaredStop], channel: Channel) -> StopScanner:
    return StopScanner(tuple(d for d in stops if d.stop.channel is channel))
