"""Chat messages and tools as the contract's records."""

from __future__ import annotations

from collections.abc import Sequence

from ninfer.contract import Message, Role, ToolCall, ToolDeclaration
from ninfer.gateway.chat.wire import ChatMessage, ContentPart, ToolItem
from ninfer.gateway.failure import WireError
from ninfer.gateway.tooling import declare

_ROLES = {role.value: role for role in Role} | {"function": Role.TOOL}


def messages_of(messages: Sequence[ChatMessage]) -> tuple[Message, ...]:
    """Return the conversation.

    Raises: WireError — a role or a content part is not served.
    """
    return tuple(_message(index, message) for index, message in enumerate(messages))


def tools_of(items: Sequence[ToolItem]) -> tuple[ToolDeclaration, ...]:
    """Return the declared tools.

    Raises: WireError — one is not a function.
    """
    declared = []
    for index, item in enumerate(items):
        if item.type != "function" or item.function is None:
            fact = f"{item.type!r} tools are not served, only functions"
            raise WireError(fact, param=f"tools[{index}].type", code="tool_type_not_supported")
        declared.append(declare(item.function))
    return tuple(declared)


def _message(index: int, message: ChatMessage) -> Message:
    if message.role not in _ROLES:
        fact = f"{message.role!r} is not one of {', '.join(_ROLES)}"
        raise WireError(fact, param=f"messages[{index}].role", code="invalid_value")
    calls = message.tool_calls or []
    return Message(
        role=_ROLES[message.role],
        content=_text(message.content, f"messages[{index}].content"),
        reasoning=message.reasoning_content,
        tool_calls=tuple(ToolCall(c.function.name, c.function.arguments) for c in calls),
        tool_call_id=message.tool_call_id,
        name=message.name,
    )


def _text(content: str | list[ContentPart] | None, field: str) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    texts = []
    for index, part in enumerate(content):
        if part.type not in ("text", "refusal"):
            fact = f"{part.type!r} parts are not served, only text"
            raise WireError(fact, param=f"{field}[{index}].type", code="unsupported_content")
        texts.append(part.text or "")
    return "".join(texts)
