"""``--messages FILE``: a conversation, and the tools it may call, in the OpenAI Chat shape."""

from __future__ import annotations

from pathlib import Path

from ninfer.cli.constraint_flags import read_text
from ninfer.cli.failure import InputError
from ninfer.contract import ChatPrompt, PromptOptions


def read_conversation(path: Path) -> ChatPrompt:
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
        return ChatPrompt(messages, PromptOptions(tools=tools_of(conversation.tools or [])))
    except WireError as error:
        place = f"--messages {path}" + (f": {error.param}" if error.param else "")
        raise InputError(place, error.fact, error.code or "invalid_prompt") from None
