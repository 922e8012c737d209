"""Messages' content blocks as a conversation of the contract's messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ninfer.contract import Message, Role, ToolCall
from ninfer.gateway.failure import WireError
from ninfer.gateway.messages.wire import Block, ConversationMessage
from ninfer.gateway.tooling import made_call
from ninfer.gateway.translated import PlacedMessage, require_text
from ninfer.gateway.wire import raw_text


def conversation(
    system: str | list[Block] | None, messages: list[ConversationMessage]
) -> Iterator[PlacedMessage]:
    """Yield the conversation, system text first.

    Raises: WireError — a role or a block is not served, or stands where it may not.
    """
    if system:
        yield PlacedMessage(Message(Role.SYSTEM, _system_text(system, "system")), "system")
    for index, message in enumerate(messages):
        place = f"messages[{index}]"
        for said in _said(message, place):
            yield PlacedMessage(said, place)


def _said(message: ConversationMessage, place: str) -> Iterator[Message]:
    content = message.content
    if message.role == "assistant":
        yield _assistant(content, place)
    elif message.role == "user":
        yield from _user(content, place)
    elif message.role == "system":
        yield Message(Role.SYSTEM, _system_text(content, f"{place}.content"))
    else:
        fact = f"{message.role!r} is not one of user, assistant, system"
        raise WireError(fact, param=f"{place}.role")


def _system_text(system: str | list[Block], place: str) -> str:
    if isinstance(system, str):
        return system
    return "".join(_text(block, f"{place}[{i}]") for i, block in enumerate(system))


def _user(content: str | list[Block], place: str) -> Iterator[Message]:
    if isinstance(content, str):
        yield Message(Role.USER, content)
        return
    texts: list[str] = []
    for index, block in enumerate(content):
        at = f"{place}.content[{index}]"
        if block.type != "tool_result":
            texts.append(_text(block, at))
            continue
        if texts:
            yield Message(Role.USER, "".join(texts))
            texts = []
        result = _result_text(block.content, at)
        yield Message(Role.TOOL, result, tool_call_id=block.tool_use_id)
    if texts or not content:
        yield Message(Role.USER, "".join(texts))


def _assistant(content: str | list[Block], place: str) -> Message:
    if isinstance(content, str):
        return Message(Role.ASSISTANT, content)
    texts, thoughts, calls = [], [], []
    for index, block in enumerate(content):
        at = f"{place}.content[{index}]"
        if block.type == "thinking":
            thoughts.append(require_text(block.thinking, f"{at}.thinking"))
        elif block.type == "redacted_thinking":
            continue
        elif block.type == "tool_use":
            calls.append(_call(block, at))
        else:
            texts.append(_text(block, at))
    reasoning = "".join(thoughts) if thoughts else None
    return Message(Role.ASSISTANT, "".join(texts), reasoning, tuple(calls))


def _call(block: Block, place: str) -> ToolCall:
    if not block.name:
        fact = "required with type tool_use"
        raise WireError(fact, param=f"{place}.name", code="missing_field")
    return made_call(block.name, raw_text(block.input) or "{}", f"{place}.input")


def _text(block: Block, place: str) -> str:
    if block.type != "text":
        fact = f"{block.type!r} blocks are not served here"
        raise WireError(fact, param=f"{place}.type", code="unsupported_content")
    return require_text(block.text, f"{place}.text")


def _result_text(content: Any, place: str) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    texts = []
    for index, block in enumerate(content if isinstance(content, list) else [content]):
        is_text = isinstance(block, dict) and block.get("type") == "text"
        if not is_text or not isinstance(block.get("text"), str):
            fact = "only text blocks are served in a tool result"
            raise WireError(fact, param=f"{place}.content[{index}]", code="unsupported_content")
        texts.append(block["text"])
    return "".join(texts)
