"""``--messages FILE``: a conversation, and the tools it may call, in the OpenAI Chat shape."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ninfer.cli.constraint_flags import read_text
from ninfer.cli.failure import InputError
from ninfer.cli.places import ToolPlace
from ninfer.contract import ChatPrompt, PromptOptions


class ReadConversation(NamedTuple):
    """A conversation, and where its messages and tools stand."""

    prompt: ChatPrompt
    messages: tuple[str, ...]
    tools: tuple[ToolPlace, ...]


def read_conversation(path: Path) -> ReadConversation:
    """Return the conversation of a file: a list of messages, or an object with messages and tools.

    Raises: InputError — the file cannot be read, is not JSON, or a field is wrong.
    """
    # The gateway's typed records read the same shape; they are only loaded for this option.
    from ninfer.gateway.chat.conversation import messages_of, tools_of
    from ninfer.gateway.chat.wire import ChatMessage, Conversation
    from ninfer.gateway.failure import WireError
    from ninfer.gateway.wire import read_body

    body = read_text("--messages", path).encode()
    try:
        if body.lstrip().startswith(b"["):
            conversation = Conversation(messages=read_body(body, list[ChatMessage]))
        else:
            conversation = read_body(body, Conversation)
        messages = messages_of(conversation.messages)
        tools = tools_of(conversation.tools or [])
    except WireError as error:
        param = error.param or ""
        # A list of messages is named like the messages of an object.
        param = f"messages{param}" if param.startswith("[") else param
        place = f"--messages {path}" + (f": {param}" if param else "")
        raise InputError(place, error.fact, error.code) from None
    return ReadConversation(
        ChatPrompt(messages, PromptOptions(tools=tools)),
        tuple(f"--messages {path}: messages[{index}]" for index in range(len(messages))),
        tuple(
            ToolPlace(tool.name, f"--messages {path}: tools[{index}].function")
            for index, tool in enumerate(tools)
        ),
    )
