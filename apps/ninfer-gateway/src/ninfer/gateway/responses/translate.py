"""A Responses request in the contract's words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ninfer.contract import (
    ExecutionOptions,
    OutputConstraint,
    PromptOptions,
    RequestOptions,
    ThinkingOptions,
    ToolChoice,
    ToolDeclaration,
    ToolMode,
)
from ninfer.gateway.constraint import FieldConstraint, content_constraint
from ninfer.gateway.defaults import AnswerDefaults, template_names
from ninfer.gateway.effort import reasoning_effort
from ninfer.gateway.failure import Fields, ToolField, WireError
from ninfer.gateway.responses.items import History, callable_name, conversation
from ninfer.gateway.responses.wire import (
    UNSERVED,
    NamedTool,
    ResponsesRequest,
    TextFormat,
    ToolChoiceItem,
    ToolItem,
)
from ninfer.gateway.sampling import output_tokens, sampling_overrides
from ninfer.gateway.tooling import FunctionDeclaration, declare, tool_mode, tool_policy
from ninfer.gateway.translated import PlacedPrompt, Translated, refuse_unserved
from ninfer.gateway.wire import raw_text

_OPTION_FIELDS = {
    "prompt.messages": "input",
    "prompt.enable_thinking": "enable_thinking",
    "prompt.reasoning_effort": "reasoning.effort",
    "prompt.preserve_thinking": "preserve_thinking",
    "prompt.chat_template_kwargs_json": "chat_template_kwargs",
    "execution.requested_output_tokens": "max_output_tokens",
    "execution.thinking.budget_tokens": "thinking_budget",
}


def translate(request: ResponsesRequest, history: History, defaults: AnswerDefaults) -> Translated:
    """Return what a Responses request asks of the engine; ``history`` is the whole conversation.

    Raises: WireError — a field is out of range, unserved or contradicts another.
    """
    refuse_unserved(request, UNSERVED)
    format = request.text.format if request.text else None
    held = content_constraint(_constraint(format), request.structured_outputs, "text.format")
    options = RequestOptions(
        constraint=held.constraint if held else None,
        tool_choice=_tool_choice(request),
        execution=_execution(request, defaults),
        phase_timings=True,
    )
    placed = prompt_of(request, history, defaults)
    fields = prompt_fields(request, placed, held.field if held else None)
    return Translated(placed.prompt, options, fields)


def prompt_fields(
    request: ResponsesRequest, placed: PlacedPrompt, constraint: str | None = None
) -> Fields:
    """Return how errors name the fields of a request with this prompt."""
    tools = tuple(ToolField(tool.name, place) for place, tool in _functions(request.tools or []))
    return Fields(constraint, _OPTION_FIELDS, placed.places, tools)


def prompt_of(
    request: ResponsesRequest, history: History, defaults: AnswerDefaults
) -> PlacedPrompt:
    """Return the prompt alone.

    Raises: WireError — an item, a tool or a thinking option is not served.
    """
    effort = request.reasoning.effort if request.reasoning else None
    template = template_names(request.chat_template_kwargs)
    options = PromptOptions(
        enable_thinking=defaults.thinking(request.enable_thinking, effort, template),
        reasoning_effort=reasoning_effort(effort, "reasoning.effort"),
        preserve_thinking=defaults.preserving(request.preserve_thinking, template),
        chat_template_kwargs_json=raw_text(request.chat_template_kwargs),
        tools=tuple(tool for _, tool in _functions(request.tools or [])),
    )
    return PlacedPrompt.of(conversation(request.instructions, history), options)


def _constraint(format: TextFormat | None) -> FieldConstraint | None:
    if format is None or format.type == "text":
        return None
    if format.type == "json_object":
        return FieldConstraint("text.format", OutputConstraint.json_object())
    if format.type != "json_schema":
        fact = f"{format.type!r} is not one of text, json_object, json_schema"
        raise WireError(fact, param="text.format.type")
    schema = raw_text(format.schema)
    if schema is None:
        fact = "required with type json_schema"
        raise WireError(fact, param="text.format.schema", code="missing_field")
    return FieldConstraint("text.format.schema", OutputConstraint.json_schema(schema))


def _execution(request: ResponsesRequest, defaults: AnswerDefaults) -> ExecutionOptions:
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
        requested_output_tokens=output_tokens(
            request.max_output_tokens, defaults.output_tokens, field="max_output_tokens"
        ),
        thinking=ThinkingOptions(defaults.budget(request.thinking_budget)),
    )


def _functions(
    tools: Sequence[ToolItem], field: str = "tools", namespace: str | None = None
) -> Iterator[tuple[str, ToolDeclaration]]:
    for index, tool in enumerate(tools):
        place = f"{field}[{index}]"
        if tool.type != "function" and (tool.type != "namespace" or namespace is not None):
            fact = f"{tool.type!r} tools are not served here"
            raise WireError(fact, param=f"{place}.type", code="tool_type_not_supported")
        if not tool.name:
            raise WireError("a tool has no name", param=f"{place}.name", code="missing_field")
        if tool.type == "namespace":
            yield from _functions(tool.tools or [], f"{place}.tools", tool.name)
        else:
            name = callable_name(namespace, tool.name)
            function = FunctionDeclaration(name, tool.description, tool.parameters, tool.strict)
            yield f"{place}.parameters", declare(function)


def _tool_choice(request: ResponsesRequest) -> ToolChoice:
    choice, parallel = request.tool_choice, request.parallel_tool_calls
    constraints = request.tool_constraints
    if not isinstance(choice, ToolChoiceItem):
        mode = ToolMode.AUTO if choice is None else tool_mode(choice, "tool_choice")
        return tool_policy(mode, None, parallel=parallel, constraints=constraints)
    if choice.type == "function" and choice.name:
        name = callable_name(choice.namespace, choice.name)
        return tool_policy(ToolMode.REQUIRED, (name,), parallel=False, constraints=constraints)
    if choice.type == "allowed_tools" and choice.tools is not None:
        mode = tool_mode(choice.mode or "auto", "tool_choice.mode")
        names = tuple(_allowed_names(choice.tools))
        return tool_policy(mode, names, parallel=parallel, constraints=constraints)
    fact = f"{choice.type!r} is not one of function, allowed_tools, or lacks its fields"
    raise WireError(fact, param="tool_choice.type")


def _allowed_names(tools: Sequence[NamedTool]) -> Iterator[str]:
    for index, tool in enumerate(tools):
        place = f"tool_choice.tools[{index}]"
        if tool.type != "function":
            fact = f"{tool.type!r} tools are not served"
            raise WireError(fact, param=f"{place}.type", code="tool_type_not_supported")
        if not tool.name:
            raise WireError("a tool has no name", param=f"{place}.name", code="missing_field")
        yield callable_name(tool.namespace, tool.name)
