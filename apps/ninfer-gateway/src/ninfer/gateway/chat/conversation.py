"""Chat messages and tools as the contract's records."""

from __future__ import annotations

from collections.abc import Sequence

from ninfer.contract import Message, Role, ToolDeclaration
from ninfer.gateway.chat.wire import ChatMessage, ContentPart, ToolItem
from ninfer.gateway.failure import WireError
from ninfer.gateway.tooling import declare, made_call
from ninfer.gateway.translated import require_text

_ROLES = {role.value: role for role in Role} | {"function": Role.TOOL}


def messages_of(messages: Sequence[ChatMessage]) -> tuple[Message, ...]:
    """Return the conversation.

    Raises: WireError — a role or a content part is not served, or a message says nothing.
    """
    return tuple(_message(index, message) for index, message in enumerate(messages))


def tools_of(items: Sequence[ToolItem]) -> tuple[ToolDeclaration, ...]:
    """Return the declared tools.

    Raises: WireError — one is not a function.
    """
    declared = []
    for index, item in enumerate(items):
        place = f"tools[{index}]"
        if item.type != "function":
            fact = f"{item.type!r} tools are not served, only functions"
            raise WireError(fact, param=f"{place}.type", code="tool_type_not_supported")
        if item.function is None:
            fact = "required field is missing"
            raise WireError(fact, param=f"{place}.function", code="missing_field")
        declared.append(declare(item.function))
    return tuple(declared)


def _message(index: int, message: ChatMessage) -> Message:
    place = f"messages[{index}]"
    if message.role not in _ROLES:
        fact = f"{message.role!r} is not one of {', '.join(_ROLES)}"
        raise WireError(fact, param=f"{place}.role")
    calls = message.tool_calls or []
    content = message.refusal if message.content is None else message.content
    if content is None and (calls or message.reasoning_content):
        content = ""
    return Message(
        role=_ROLES[message.role],
        content=_text(content, f"{place}.content"),
        reasoning=message.reasoning_content,
        tool_calls=tuple(
            made_call(
                call.function.name,
                call.function.arguments,
                f"{place}.tool_calls[{number}].function.arguments",
            )
            for number, call in enumerate(calls)
        ),
        tool_call_id=message.tool_call_id,
        name=message.name,
    )


def _text(content: str | list[ContentPart] | None, field: str) -> str:
    if content is None or isinstance(content, str):
        return require_text(content, field)
    texts = []
    for index, part in enumerate(content):
        place = f"{field}[{index}]"
        if part.type not in ("text", "refusal"):
            fact = f"{part.type!r} parts are not served, only text"
            raise WireError(fact, param=f"{place}.type", code="unsupported_content")
        text = part.text if part.type == "text" else part.refusal
        texts.append(require_text(text, f"{place}.{part.type}"))
    return "".join(texts)
