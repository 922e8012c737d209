"""What a Chat request and its replies look like on the wire.

Unknown top-level fields are ignored, as the protocol's own servers do; those that would change an
answer and are not served stand in ``UNSERVED``.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ninfer.gateway.constraint import ResponseFormat, StructuredOutputs
from ninfer.gateway.tooling import FunctionDeclaration, ToolConstraintsName


class ContentPart(msgspec.Struct):
    """One part of a message's content; its text stands in the field its type names."""

    type: str
    text: str | None = None
    refusal: str | None = None


class FunctionCall(msgspec.Struct):
    """A call as the model made it; ``arguments`` is JSON text."""

    name: str
    arguments: str


class ToolCallItem(msgspec.Struct):
    """One call of an assistant message."""

    id: str
    function: FunctionCall
    type: str = "function"


class ChatMessage(msgspec.Struct):
    """One message of the conversation."""

    role: str
    content: str | list[ContentPart] | None = None
    name: str | None = None
    reasoning_content: str | None = None
    refusal: str | None = None
    tool_calls: list[ToolCallItem] | None = None
    tool_call_id: str | None = None


class ToolItem(msgspec.Struct):
    """One declared tool."""

    type: str
    function: FunctionDeclaration | None = None


class Conversation(msgspec.Struct):
    """Messages and tools alone, as a file holds them."""

    messages: list[ChatMessage]
    tools: list[ToolItem] | None = None


class NamedFunction(msgspec.Struct):
    """The function a tool choice names."""

    name: str


class NamedTool(msgspec.Struct):
    """A tool that a choice refers to."""

    type: str
    function: NamedFunction | None = None


class AllowedTools(msgspec.Struct):
    """A subset of the declared tools and whether one of them must be called."""

    mode: str
    tools: list[NamedTool]


class ToolChoiceItem(msgspec.Struct):
    """A tool choice that is more than a word."""

    type: str
    function: NamedFunction | None = None
    allowed_tools: AllowedTools | None = None


class StreamOptions(msgspec.Struct):
    """How a stream ends."""

    include_usage: bool | None = None


class ChatRequest(msgspec.Struct):
    """The body of ``POST /v1/chat/completions``."""

    model: str
    messages: list[ChatMessage]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_completion_tokens: int | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    response_format: ResponseFormat | None = None
    structured_outputs: StructuredOutputs | None = None
    tools: list[ToolItem] | None = None
    tool_choice: str | ToolChoiceItem | None = None
    parallel_tool_calls: bool | None = None
    tool_constraints: ToolConstraintsName | None = None
    reasoning_effort: str | None = None
    enable_thinking: bool | None = None
    preserve_thinking: bool | None = None
    thinking_budget: int | None = None
    chat_template_kwargs: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    token_trace: bool | None = None
    return_progress: bool | None = None
    timings_per_token: bool | None = None
    n: Any = None
    logprobs: Any = None
    top_logprobs: Any = None
    logit_bias: Any = None
    modalities: Any = None
    audio: Any = None
    prediction: Any = None
    functions: Any = None
    function_call: Any = None
    web_search_options: Any = None


UNSERVED: dict[str, tuple[Any, ...]] = {
    "n": (None, 1),
    "logprobs": (None, False),
    "top_logprobs": (None, 0),
    "logit_bias": (None, {}),
    "modalities": (None, ["text"]),
    "audio": (None,),
    "prediction": (None,),
    "functions": (None, []),
    "function_call": (None, "none", "auto"),
    "web_search_options": (None,),
}
"""Fields that are not served, with the values that ask for nothing and are accepted."""
