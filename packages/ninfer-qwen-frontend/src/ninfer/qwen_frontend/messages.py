"""Messages and prompt options as the values a chat template receives."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NoReturn

from ninfer.contract import (
    ConflictingOptions,
    InvalidOption,
    InvalidPrompt,
    InvalidToolConstraint,
    JsonPointer,
    Message,
    OptionPath,
    PromptOptions,
    ReasoningEffort,
    Role,
    ToolCall,
    ToolDeclaration,
    UnsupportedOption,
)
from ninfer.qwen_frontend.template import ChatTemplate

_KWARGS_OPTION = "prompt.chat_template_kwargs_json"
_OWNED_NAMES = ("messages", "tools", "add_generation_prompt", "bos_token", "eos_token")
_EFFORTS = tuple(ReasoningEffort)


def template_messages(messages: Sequence[Message], template: ChatTemplate) -> list[dict[str, Any]]:
    """Return the conversation as plain values.

    A template that does not know developers is given their messages as system messages.
    Raises: InvalidPrompt — there is no message, or a call's arguments are not a JSON object.
    """
    if not messages:
        raise InvalidPrompt("there are no messages", location=OptionPath("prompt.messages"))
    roles = {role: role.value for role in Role}
    if not template.mentions(Role.DEVELOPER.value):
        roles[Role.DEVELOPER] = Role.SYSTEM.value
    return [_message(i, message, roles[message.role]) for i, message in enumerate(messages)]


def template_tools(tools: Sequence[ToolDeclaration]) -> list[Any] | None:
    """Return the declarations as plain values, in order; None without tools.

    Raises: InvalidToolConstraint — a declaration is not JSON.
    """
    found = []
    for index, tool in enumerate(tools):
        try:
            found.append(_read_json(tool.declaration_json))
        except ValueError as error:
            raise InvalidToolConstraint(
                f"not JSON: {error}", location=JsonPointer() / index
            ) from error
    return found or None


def template_options(
    options: PromptOptions, template: ChatTemplate, *, can_think: bool
) -> dict[str, Any]:
    """Return the template's own variables.

    Raises: InvalidOption — the kwargs are not a JSON object or name a variable the frontend owns;
            ConflictingOptions — an option and the kwargs set the same variable;
            UnsupportedOption — thinking is asked of a model that does not think.
    """
    chosen: dict[str, Any] = {}
    if options.preserve_thinking is not None:
        chosen["preserve_thinking"] = options.preserve_thinking
    chosen |= _thinking_variables(options, template, can_think=can_think)
    extra = _kwargs(options.chat_template_kwargs_json)
    for name in extra:
        if name in chosen:
            raise ConflictingOptions(f"prompt.{name}", _KWARGS_OPTION, f"both set {name!r}")
    return extra | chosen


def _thinking_variables(
    options: PromptOptions, template: ChatTemplate, *, can_think: bool
) -> dict[str, Any]:
    effort, toggle = options.reasoning_effort, options.enable_thinking
    if not can_think:
        if toggle or effort not in (None, ReasoningEffort.NONE):
            name = "prompt.enable_thinking" if toggle else "prompt.reasoning_effort"
            raise UnsupportedOption("this model does not think", location=OptionPath(name))
        return {} if toggle is None else {"enable_thinking": False}
    if effort is not None and toggle is not None and toggle is (effort is ReasoningEffort.NONE):
        raise ConflictingOptions("prompt.enable_thinking", "prompt.reasoning_effort")
    variables: dict[str, Any] = {} if toggle is None else {"enable_thinking": toggle}
    if effort is None:
        return variables
    known = [e for e in _EFFORTS if f"'{e.value}'" in template.source.replace('"', "'")]
    if template.mentions("reasoning_effort") and known and effort is not ReasoningEffort.NONE:
        return variables | {"reasoning_effort": _nearest(effort, known).value}
    return {"enable_thinking": effort is not ReasoningEffort.NONE}


def _nearest(effort: ReasoningEffort, known: Sequence[ReasoningEffort]) -> ReasoningEffort:
    """Return the closest effort a template knows, the greater of two equally close."""
    wanted = _EFFORTS.index(effort)
    return min(known, key=lambda e: (abs(_EFFORTS.index(e) - wanted), -_EFFORTS.index(e)))


def _kwargs(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    place = OptionPath(_KWARGS_OPTION)
    try:
        value = _read_json(text)
    except ValueError as error:
        raise InvalidOption(f"not JSON: {error}", location=place) from error
    if not isinstance(value, dict):
        raise InvalidOption("not a JSON object", location=place)
    for name in value:
        if name in _OWNED_NAMES:
            raise InvalidOption(f"{name!r} cannot be set", location=place)
    return value


def _message(index: int, message: Message, role: str) -> dict[str, Any]:
    value: dict[str, Any] = {"role": role, "content": message.content}
    if message.reasoning is not None:
        value["reasoning_content"] = message.reasoning
    if message.tool_calls:
        if message.role is not Role.ASSISTANT:
            raise InvalidPrompt(
                f"a {message.role.value} message cannot call tools",
                location=OptionPath("prompt.messages", index),
            )
        value["tool_calls"] = [_call(index, call) for call in message.tool_calls]
    for name in ("tool_call_id", "name"):
        if (text := getattr(message, name)) is not None:
            value[name] = text
    return value


def _call(index: int, call: ToolCall) -> dict[str, Any]:
    try:
        arguments = _read_json(call.arguments_json)
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        raise InvalidPrompt(
            f"the arguments of a call of {call.name!r} are not a JSON object",
            location=OptionPath("prompt.messages", index),
        )
    return {"type": "function", "function": {"name": call.name, "arguments": arguments}}


def _read_json(text: str) -> Any:
    """Return what a JSON text means.

    Raises: ValueError — it is not JSON, or nested deeper than can be read.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON value")
