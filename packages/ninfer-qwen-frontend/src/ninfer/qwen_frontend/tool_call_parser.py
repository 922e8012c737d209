"""Text of calls to names and parameter texts, by the framing the grammar is made of.

Reads structure only; what the parameter texts mean is ``tool_arguments``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from ninfer.qwen_frontend.tool_framing import (
    CALL_CLOSING,
    CALL_OPENING,
    CALL_SEPARATOR,
    FUNCTION_OPENING,
    PARAMETER_CLOSING,
    PARAMETER_OPENING,
    TAG_END,
)
from ninfer.qwen_frontend.tool_values import VALUE_CLOSING


class RawCall(NamedTuple):
    """A complete call as it was written; parameters in order, repeats included."""

    name: str
    parameters: tuple[tuple[str, str], ...]


class Ending(Enum):
    """How a text of calls ends."""

    COMPLETE = "complete"
    """Behind a call, or before any."""
    UNFINISHED = "unfinished"
    """Inside what may still become a call."""
    MALFORMED = "malformed"
    """With something that no call begins with or holds."""
    TRAILING = "trailing"
    """With other text behind a complete call."""


class ParsedCalls(NamedTuple):
    """The complete calls of a text, and how the text ends."""

    calls: tuple[RawCall, ...]
    ending: Ending


def parse_calls(text: str, *, is_exact: bool) -> ParsedCalls:
    """Return the calls of a text that begins with the call marker.

    Math: exact: the grammar's framing, byte for byte. Otherwise white space between tags is free,
          and a value that does not begin with a line break ends at the first closing tag.
    """
    reader = _Reader(text, is_exact)
    calls: list[RawCall] = []
    try:
        while True:
            calls.append(reader.call())
            if not reader.separator():
                return ParsedCalls(tuple(calls), Ending.COMPLETE)
    except _Stopped as stopped:
        return ParsedCalls(tuple(calls), stopped.ending)


class _Stopped(Exception):
    def __init__(self, ending: Ending) -> None:
        self.ending = ending


@dataclass(slots=True)
class _Reader:
    text: str
    is_exact: bool
    at: int = field(default=0)

    def call(self) -> RawCall:
        self.take(CALL_OPENING)
        self.tag(FUNCTION_OPENING)
        name = self.name()
        parameters = []
        while self.sees(PARAMETER_OPENING):
            self.tag(PARAMETER_OPENING)
            parameters.append((self.name(), self.value()))
        function_end, call_end = CALL_CLOSING.split("\n")
        self.tag(function_end)
        self.tag("\n" + call_end)
        return RawCall(name, tuple(parameters))

    def separator(self) -> bool:
        """Return whether another call follows; stop where something else does."""
        rest = self.text[self.at :]
        if not rest or (not self.is_exact and not rest.strip()):
            return False
        if not self.is_exact:
            rest = rest.lstrip()
            self.at = len(self.text) - len(rest)
            following = CALL_OPENING
        else:
            following = CALL_SEPARATOR + CALL_OPENING
        if rest.startswith(following):
            self.at += len(following) - len(CALL_OPENING)
            return True
        raise _Stopped(Ending.UNFINISHED if following.startswith(rest) else Ending.TRAILING)

    def sees(self, opening: str) -> bool:
        self.skip()
        rest = self.text[self.at : self.at + len(opening)]
        if len(rest) < len(opening) and opening.startswith(rest):
            raise _Stopped(Ending.UNFINISHED)
        return rest == opening

    def tag(self, text: str) -> None:
        if not self.is_exact:
            text = text.strip()
            self.skip()
        self.take(text)

    def take(self, text: str) -> None:
        rest = self.text[self.at : self.at + len(text)]
        if rest != text:
            is_open = len(rest) < len(text) and text.startswith(rest)
            raise _Stopped(Ending.UNFINISHED if is_open else Ending.MALFORMED)
        self.at += len(text)

    def name(self) -> str:
        """Return a tag's name; the exact tag ends with its line break."""
        end = TAG_END if self.is_exact else TAG_END.strip()
        stop = self.text.find(end, self.at)
        name = self.text[self.at : stop if stop >= 0 else len(self.text)]
        if stop < 0:
            # A lone '>' at the very end may still be followed by its line break.
            name = name.removesuffix(">") if self.is_exact else name
        if any(character in name for character in "<>\r\n"):
            raise _Stopped(Ending.MALFORMED)
        if stop < 0:
            raise _Stopped(Ending.UNFINISHED)
        if not name:
            raise _Stopped(Ending.MALFORMED)
        self.at = stop + len(end)
        return name

    def value(self) -> str:
        if self.is_exact:
            return self.until(VALUE_CLOSING, PARAMETER_CLOSING)
        if self.text.startswith("\r\n", self.at):
            self.at += 1
        is_framed = self.text.startswith("\n", self.at)
        self.at += is_framed
        if is_framed and self.text.find(VALUE_CLOSING, self.at) >= 0:
            return self.until(VALUE_CLOSING, VALUE_CLOSING)
        return self.until(VALUE_CLOSING.strip(), VALUE_CLOSING.strip())

    def until(self, delimiter: str, closing: str) -> str:
        stop = self.text.find(delimiter, self.at)
        if stop < 0:
            raise _Stopped(Ending.UNFINISHED)
        value = self.text[self.at : stop]
        self.at = stop
        self.take(closing)
        return value

    def skip(self) -> None:
        if not self.is_exact:
            while self.at < len(self.text) and self.text[self.at].isspace():
                self.at += 1
