"""A Chat request in the contract's words."""

from __future__ import annotations

from collections.abc import Iterator

from ninfer.contract import (
    ChatPrompt,
    ExecutionOptions,
    PromptOptions,
    RequestOptions,
    StopPolicy,
    StopString,
    ThinkingOptions,
    ToolChoice,
    ToolMode,
)
from ninfer.gateway.chat.conversation import messages_of, tools_of
from ninfer.gateway.chat.wire import UNSERVED, AllowedTools, ChatRequest, ToolChoiceItem
from ninfer.gateway.constraint import content_constraint, response_format_constraint
from ninfer.gateway.defaults import AnswerDefaults, template_names
from ninfer.gateway.effort import reasoning_effort
from ninfer.gateway.failure import Fields, ToolField, WireError
from ninfer.gateway.sampling import (
    output_tokens,
    sampling_overrides,
    stop_strings,
)
from ninfer.gateway.tooling import tool_mode, tool_policy
from ninfer.gateway.translated import Translated, refuse_unserved
from ninfer.gateway.wire import raw_text

_STOP_LIMIT = 4
_OPTION_FIELDS = {
    "prompt.messages": "messages",
    "prompt.enable_thinking": "enable_thinking",
    "prompt.reasoning_effort": "reasoning_effort",
    "prompt.preserve_thinking": "preserve_thinking",
    "prompt.chat_template_kwargs_json": "chat_template_kwargs",
    "stop.strings": "stop",
    "execution.requested_output_tokens": "max_completion_tokens",
    "execution.thinking.budget_tokens": "thinking_budget",
}


def translate(request: ChatRequest, defaults: AnswerDefaults) -> Translated:
    """Return what a Chat request asks of the engine, with the server's defaults.

    Raises: WireError — a field is out of range, unserved or contradicts another.
    """
    refuse_unserved(request, UNSERVED)
    standard = response_format_constraint(request.response_format)
    held = content_constraint(standard, request.structured_outputs, "response_format")
    options = RequestOptions(
        constraint=held.constraint if held else None,
        tool_choice=_tool_choice(request),
        execution=_execution(request, defaults),
        stop=StopPolicy(strings=_stops(request.stop)),
        phase_timings=True,
        live_timings=bool(request.stream and request.timings_per_token),
    )
    prompt = _prompt(request, defaults)
    fields = Fields(
        constraint=held.field if held else None,
        options=_OPTION_FIELDS,
        messages=tuple(f"messages[{index}]" for index in range(len(prompt.messages))),
        tools=tuple(
            ToolField(tool.name, f"tools[{index}].function.parameters")
            for index, tool in enumerate(prompt.options.tools)
        ),
    )
    return Translated(prompt, options, fields)


def _execution(request: ChatRequest, defaults: AnswerDefaults) -> ExecutionOptions:
    field = "max_tokens" if request.max_completion_tokens is None else "max_completion_tokens"
    limit: int | None = getattr(request, field)
    return ExecutionOptions(
        sampling=sampling_overrides(
            temperature=request.temperature,
            top_p=request.top_p,
            top_k=request.top_k,
            min_p=request.min_p,
            presence_penalty=request.presence_penalty,
            frequency_penalty=request.frequency_penalty,
            seed=request.seed,
            defaults=defaults.sampling,
        ),
        requested_output_tokens=output_tokens(limit, defaults.output_tokens, field=field),
        thinking=ThinkingOptions(defaults.budget(request.thinking_budget)),
    )


def _stops(stop: str | list[str] | None) -> tuple[StopString, ...]:
    texts = [stop] if isinstance(stop, str) else stop or []
    return stop_strings(texts, field="stop", limit=_STOP_LIMIT)


def _prompt(request: ChatRequest, defaults: AnswerDefaults) -> ChatPrompt:
    template = template_names(request.chat_template_kwargs)
    options = PromptOptions(
        enable_thinking=defaults.thinking(
            request.enable_thinking, request.reasoning_effort, template
        ),
        reasoning_effort=reasoning_effort(request.reasoning_effort, "reasoning_effort"),
        preserve_thinking=defaults.preserving(request.preserve_thinking, template),
        chat_template_kwargs_json=raw_text(request.chat_template_kwargs),
        tools=tools_of(request.tools or []),
    )
    return ChatPrompt(messages_of(request.messages), options)


def _tool_choice(request: ChatRequest) -> ToolChoice:
    choice, parallel = request.tool_choice, request.parallel_tool_calls
    constraints = request.tool_constraints
    if isinstance(choice, ToolChoiceItem):
        mode, names = _restricted(choice)
        if choice.type == "function":
            parallel = False
        return tool_policy(mode, names, parallel=parallel, constraints=constraints)
    mode = ToolMode.AUTO if choice is None else tool_mode(choice, "tool_choice")
    return tool_policy(mode, None, parallel=parallel, constraints=constraints)


def _restricted(choice: ToolChoiceItem) -> tuple[ToolMode, tuple[str, ...]]:
    if choice.type == "function" and choice.function is not None:
        return ToolMode.REQUIRED, (choice.function.name,)
    if choice.type == "allowed_tools" and choice.allowed_tools is not None:
        mode = tool_mode(choice.allowed_tools.mode, "tool_choice.allowed_tools.mode")
        return mode, tuple(_allowed_names(choice.allowed_tools))
    fact = f"{choice.type!r} is not one of function, allowed_tools, or lacks its object"
    raise WireError(fact, param="tool_choice.type")


def _allowed_names(allowed: AllowedTools) -> Iterator[str]:
    for index, tool in enumerate(allowed.tools):
        if tool.function is None:
            place = f"tool_choice.allowed_tools.tools[{index}].function"
            raise WireError("required field is missing", param=place, code="missing_field")
        yield tool.function.name
