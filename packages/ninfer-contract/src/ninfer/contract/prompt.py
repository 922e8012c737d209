"""What the model reads: messages, plain text or token ids, and how they are rendered.

Source: specification 3.2 and 5.3; reference contract section 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ninfer.contract.tools import ToolCall, ToolDeclaration


class Role(Enum):
    """Who speaks."""

    SYSTEM = "system"
    DEVELOPER = "developer"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation; ``tool_call_id`` and ``name`` belong to tool results."""

    role: Role
    content: str
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None


class Continuation(Enum):
    """Start a new assistant turn, or go on with the final assistant message."""

    NEW_ASSISTANT_TURN = "new_assistant_turn"
    CONTINUE_FINAL_ASSISTANT = "continue_final_assistant"


class ReasoningEffort(Enum):
    """How much the model should think, for templates that know the word."""

    NONE = "none"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class PromptOptions:
    """How a conversation becomes a prompt; None leaves a choice to the template."""

    continuation: Continuation = Continuation.NEW_ASSISTANT_TURN
    enable_thinking: bool | None = None
    reasoning_effort: ReasoningEffort | None = None
    preserve_thinking: bool | None = None
    chat_template_kwargs_json: str | None = None
    tools: tuple[ToolDeclaration, ...] = ()


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """A conversation, rendered with the model's own template."""

    messages: tuple[Message, ...]
    options: PromptOptions = PromptOptions()


@dataclass(frozen=True, slots=True)
class TextPrompt:
    """Raw text without a template; a grammar covers all new text."""

    text: str


@dataclass(frozen=True, slots=True)
class TokenPrompt:
    """Raw token ids without a template; a grammar covers all new text."""

    token_ids: tuple[int, ...]


PromptInput = ChatPrompt | TextPrompt | TokenPrompt
