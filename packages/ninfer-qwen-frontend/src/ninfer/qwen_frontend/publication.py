"""What becomes of content text: published as it is, or read for tool calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ninfer.contract import ConstraintBranch, FinishReason, ToolCall, ToolCallParse


@dataclass(frozen=True, slots=True)
class ContentEnding:
    """What the end of an answer adds: last text, finished calls, and what the parser saw."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_parse: ToolCallParse = ToolCallParse()


class ContentPublisher(Protocol):
    """Receives committed content text only."""

    def feed(self, text: str) -> str:
        """Return the text that is content for certain; cannot fail."""
        ...

    def finish(self, reason: FinishReason) -> ContentEnding:
        """End the content.

        Raises: IntegrityError — a call that the grammar completed cannot be read.
        """
        ...

    @property
    def branch(self) -> ConstraintBranch:
        """Return the form the committed text took so far."""
        ...


class PlainContent:
    """Publishes everything at once."""

    __slots__ = ("_has_text",)

    def __init__(self, *, has_text: bool = False) -> None:
        self._has_text = has_text

    def feed(self, text: str) -> str:
        """Return ``text``."""
        self._has_text = self._has_text or bool(text)
        return text

    def finish(self, reason: FinishReason) -> ContentEnding:
        """Return an empty ending."""
        return ContentEnding()

    @property
    def branch(self) -> ConstraintBranch:
        """Return CONTENT once there is text."""
        return ConstraintBranch.CONTENT if self._has_text else ConstraintBranch.UNDECIDED
