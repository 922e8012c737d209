"""What a Responses request looks like on the wire. Unknown top-level fields are errors."""

from __future__ import annotations

from typing import Any

import msgspec

from ninfer.gateway.constraint import StructuredOutputs
from ninfer.gateway.tooling import ToolConstraintsName


class ContentPart(msgspec.Struct, omit_defaults=True):
    """One part of a message, a result, or what the model thought."""

    type: str
    text: str | None = None
    refusal: str | None = None


class InputItem(msgspec.Struct, omit_defaults=True):
    """One item of a conversation; which fields are there depends on its type."""

    type: str = "message"
    id: str | None = None
    role: str | None = None
    content: str | list[ContentPart] | None = None
    call_id: str | None = None
    name: str | None = None
    namespace: str | None = None
    arguments: str | None = None
    output: str | list[ContentPart] | None = None
    summary: list[ContentPart] | None = None
    status: str | None = None


class ToolItem(msgspec.Struct):
    """A declared function, or a namespace of functions."""

    type: str
    name: str | None = None
    description: str | None = None
    parameters: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    strict: bool | None = None
    tools: list[ToolItem] | None = None


class NamedTool(msgspec.Struct):
    """A tool that a choice refers to."""

    type: str
    name: str | None = None
    namespace: str | None = None


class ToolChoiceItem(msgspec.Struct):
    """A tool choice that is more than a word."""

    type: str
    name: str | None = None
    namespace: str | None = None
    mode: str | None = None
    tools: list[NamedTool] | None = None


class TextFormat(msgspec.Struct):
    """The language of the answer's text."""

    type: str
    schema: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    name: str | None = None
    description: str | None = None
    strict: bool | None = None


class TextConfig(msgspec.Struct):
    """How the answer's text is to be."""

    format: TextFormat | None = None
    verbosity: str | None = None


class Reasoning(msgspec.Struct):
    """How much the model is to think."""

    effort: str | None = None
    summary: str | None = None


class EchoedFields(msgspec.Struct):
    """Fields that a response repeats as they were sent."""

    tool_choice: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    tools: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    text: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    reasoning: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


class ResponsesRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /v1/responses``."""

    model: str
    input: str | list[InputItem] = ""
    instructions: str | None = None
    previous_response_id: str | None = None
    store: bool | None = None
    stream: bool | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    text: TextConfig | None = None
    structured_outputs: StructuredOutputs | None = None
    tools: list[ToolItem] | None = None
    tool_choice: str | ToolChoiceItem | None = None
    parallel_tool_calls: bool | None = None
    tool_constraints: ToolConstraintsName | None = None
    reasoning: Reasoning | None = None
    enable_thinking: bool | None = None
    preserve_thinking: bool | None = None
    thinking_budget: int | None = None
    chat_template_kwargs: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    metadata: dict[str, str] | None = None
    include: Any = None
    background: Any = None
    conversation: Any = None
    prompt: Any = None
    truncation: Any = None
    top_logprobs: Any = None
    max_tool_calls: Any = None
    service_tier: str | None = None
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    stream_options: Any = None


UNSERVED: dict[str, tuple[Any, ...]] = {
    "include": (None, [], ["reasoning.encrypted_content"]),
    "background": (None, False),
    "conversation": (None,),
    "prompt": (None,),
    "truncation": (None, "disabled"),
    "top_logprobs": (None, 0),
    "max_tool_calls": (None,),
}
"""Fields that are not served, with the values that ask for nothing and are accepted."""
