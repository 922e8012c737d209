"""Response items as a conversation of the contract's messages.

What the model thought, said and called between two inputs is one assistant message.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from ninfer.contract import Message, Role
from ninfer.gateway.failure import WireError
from ninfer.gateway.responses.wire import ContentPart, InputItem
from ninfer.gateway.tooling import made_call
from ninfer.gateway.translated import PlacedMessage, require_text

_ROLES = {role.value: role for role in Role if role is not Role.TOOL}
_TEXT_TYPES = ("input_text", "output_text", "text", "reasoning_text", "summary_text", "refusal")


class History(NamedTuple):
    """The items of a conversation; the first ``earlier_items`` come from a stored response."""

    items: tuple[InputItem, ...]
    earlier_items: int = 0

    def placed(self) -> Iterator[tuple[str, InputItem]]:
        """Yield every item with the request field that it came from."""
        for index, item in enumerate(self.items):
            own = index - self.earlier_items
            yield ("previous_response_id" if own < 0 else f"input[{own}]"), item


def conversation(instructions: str | None, history: History) -> tuple[PlacedMessage, ...]:
    """Return the conversation, instructions first.

    Raises: WireError — an item is of a type that is not served, or lacks a field.
    """
    found: list[PlacedMessage] = []
    if instructions:
        found.append(PlacedMessage(Message(Role.SYSTEM, instructions), "instructions"))
    reasoning: str | None = None
    for place, item in history.placed():
        if item.type == "reasoning":
            said = "" if item.content is None else _text(item.content, f"{place}.content")
            reasoning = (reasoning or "") + said
        elif item.type == "function_call":
            _append_call(found, item, reasoning, place)
            reasoning = None
        elif item.type == "function_call_output":
            output = _text(item.output, f"{place}.output")
            result = Message(Role.TOOL, output, tool_call_id=item.call_id)
            found.append(PlacedMessage(result, place))
        elif item.type == "message":
            found.append(PlacedMessage(_message(item, reasoning, place), place))
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
        raise WireError(fact, param=f"{place}.role")
    role = _ROLES[item.role]
    content = _text(item.content, f"{place}.content")
    return Message(role, content, reasoning if role is Role.ASSISTANT else None)


def _append_call(
    found: list[PlacedMessage], item: InputItem, reasoning: str | None, place: str
) -> None:
    if not item.name or item.arguments is None:
        fact = "name and arguments are required with type function_call"
        raise WireError(fact, param=place, code="missing_field")
    name = callable_name(item.namespace, item.name)
    call = made_call(name, item.arguments, f"{place}.arguments")
    said, begun = Message(Role.ASSISTANT, "", reasoning), place
    if reasoning is None and found and found[-1].message.role is Role.ASSISTANT:
        said, begun = found.pop()
    found.append(PlacedMessage(replace(said, tool_calls=(*said.tool_calls, call)), begun))


def _text(content: str | list[ContentPart] | None, place: str) -> str:
    if content is None or isinstance(content, str):
        return require_text(content, place)
    texts = []
    for index, part in enumerate(content):
        at = f"{place}[{index}]"
        if part.type not in _TEXT_TYPES:
            fact = f"{part.type!r} parts are not served, only text"
            raise WireError(fact, param=f"{at}.type", code="unsupported_content")
        is_refusal = part.type == "refusal"
        text = part.refusal if is_refusal else part.text
        texts.append(require_text(text, f"{at}.{'refusal' if is_refusal else 'text'}"))
    return "".join(texts)
