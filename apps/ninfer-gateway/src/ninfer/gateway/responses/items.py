"""Response items as a conversation of the contract's messages.

What the model thought, said and called between two inputs is one assistant message.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ninfer.contract import Message, Role, ToolCall
from ninfer.gateway.failure import WireError
from ninfer.gateway.responses.wire import ContentPart, InputItem

_ROLES = {role.value: role for role in Role if role is not Role.TOOL}
_TEXT_TYPES = ("input_text", "output_text", "text", "reasoning_text", "summary_text", "refusal")


def conversation(instructions: str | None, items: Iterable[InputItem]) -> tuple[Message, ...]:
    """Return the conversation, instructions first.

    Raises: WireError — an item is of a type that is not served, or lacks a field.
    """
    found: list[Message] = []
    if instructions:
        found.append(Message(Role.SYSTEM, instructions))
    reasoning: str | None = None
    for index, item in enumerate(items):
        place = f"input[{index}]"
        if item.type == "reasoning":
            reasoning = (reasoning or "") + _text(item.content, f"{place}.content")
        elif item.type == "function_call":
            _append_call(found, item, reasoning, place)
            reasoning = None
        elif item.type == "function_call_output":
            output = _text(item.output, f"{place}.output")
            found.append(Message(Role.TOOL, output, tool_call_id=item.call_id))
        elif item.type == "message":
            found.append(_message(item, reasoning, place))
            reasoning = None
        else:
            fact = f"{item.type!r} items are not served"
            raise WireError(fact, param=f"{place}.type", code="unsupported_content")
    return tuple(found)


def callable_name(namespace: str | None, name: str) -> str:
    """Return the name the model uses for a function of a namespace."""
    return f"{namespace}__{name}" if namespace else name


def _message(item: InputItem, reasoning: str | None, place: str) -> Message:
    if item.role not in _ROLES:
        fact = f"{item.role!r} is not one of {', '.join(_ROLES)}"
        raise WireError(fact, param=f"{place}.role", code="invalid_value")
    role = _ROLES[item.role]
    content = _text(item.content, f"{place}.content")
    return Message(role, content, reasoning if role is Role.ASSISTANT else None)


def _append_call(found: list[Message], item: InputItem, reasoning: str | None, place: str) -> None:
    if not item.name or item.arguments is None:
        raise WireError("name and arguments are required with type function_call", param=place)
    call = ToolCall(callable_name(item.namespace, item.name), item.arguments)
    if reasoning is None and found and found[-1].role is Role.ASSISTANT:
        found[-1] = replace(found[-1], tool_calls=(*found[-1].tool_calls, call))
    else:
        found.append(Message(Role.ASSISTANT, "", reasoning, (call,)))


def _text(content: str | list[ContentPart] | None, place: str) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    texts = []
    for index, part in enumerate(content):
        if part.type not in _TEXT_TYPES:
            fact = f"{part.type!r} parts are not served, only text"
            raise WireError(fact, param=f"{place}[{index}].type", code="unsupported_content")
        texts.append(part.text or "")
    return "".join(texts)
