"""What a Messages request looks like on the wire. Unknown fields are ignored."""

from __future__ import annotations

from typing import Any

import msgspec

from ninfer.gateway.constraint import StructuredOutputs
from ninfer.gateway.tooling import ToolConstraintsName


class Block(msgspec.Struct):
    """One content block; which fields are there depends on its type."""

    type: str
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    tool_use_id: str | None = None
    content: Any = None


class ConversationMessage(msgspec.Struct):
    """One message of the conversation."""

    role: str
    content: str | list[Block]


class Tool(msgspec.Struct):
    """One declared tool; the schema stays source text."""

    name: str
    input_schema: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    description: str | None = None
    strict: bool | None = None
    type: str | None = None


class ToolChoiceItem(msgspec.Struct):
    """The calling policy."""

    type: str
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class Thinking(msgspec.Struct):
    """Whether and how long the model may think."""

    type: str
    budget_tokens: int | None = None


class OutputFormat(msgspec.Struct):
    """The schema an answer is held to."""

    type: str
    schema: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


class OutputConfig(msgspec.Struct):
    """Effort and format of an answer."""

    effort: str | None = None
    format: OutputFormat | None = None


class MessagesRequest(msgspec.Struct):
    """The body of ``POST /v1/messages``."""

    model: str
    messages: list[ConversationMessage]
    max_tokens: int | None = None
    system: str | list[Block] | None = None
    stop_sequences: list[str] | None = None
    stream: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    tools: list[Tool] | None = None
    tool_choice: ToolChoiceItem | None = None
    thinking: Thinking | None = None
    output_config: OutputConfig | None = None
    structured_outputs: StructuredOutputs | None = None
    tool_constraints: ToolConstraintsName | None = None
    container: Any = None
    mcp_servers: Any = None


UNSERVED: dict[str, tuple[Any, ...]] = {"container": (None,), "mcp_servers": (None, [])}
"""Fields that are not served, with the values that ask for nothing and are accepted."""
