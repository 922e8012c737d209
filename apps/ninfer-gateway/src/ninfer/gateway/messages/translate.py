"""A Messages request in the contract's words."""

from __future__ import annotations

from ninfer.contract import (
    Channel,
    Continuation,
    ExecutionOptions,
    OutputConstraint,
    PromptOptions,
    RequestOptions,
    StopPolicy,
    StopString,
    ThinkingOptions,
    ToolChoice,
    ToolDeclaration,
    ToolMode,
)
from ninfer.gateway.constraint import FieldConstraint, content_constraint
from ninfer.gateway.defaults import AnswerDefaults
from ninfer.gateway.effort import reasoning_effort
from ninfer.gateway.failure import Fields, ToolField, WireError
from ninfer.gateway.messages.conversation import conversation
from ninfer.gateway.messages.wire import UNSERVED, MessagesRequest
from ninfer.gateway.sampling import sampling_overrides, stop_strings
from ninfer.gateway.tooling import FunctionDeclaration, declare, tool_policy
from ninfer.gateway.translated import PlacedPrompt, Translated, refuse_unserved
from ninfer.gateway.wire import raw_text

_THINKING_BUDGET_MINIMUM = 1024
_STOP_LIMIT = 128
_OPTION_FIELDS = {
    "prompt.messages": "messages",
    "prompt.continuation": "messages",
    "prompt.enable_thinking": "thinking.type",
    "prompt.reasoning_effort": "output_config.effort",
    "stop.strings": "stop_sequences",
    "execution.requested_output_tokens": "max_tokens",
    "execution.thinking.budget_tokens": "thinking.budget_tokens",
}


def translate(request: MessagesRequest, defaults: AnswerDefaults) -> Translated:
    """Return what a Messages request asks of the engine, with the server's defaults.

    Raises: WireError — a field is out of range, unserved or contradicts another.
    """
    refuse_unserved(request, UNSERVED)
    held = content_constraint(_format(request), request.structured_outputs, "output_config.format")
    if request.max_tokens is not None and request.max_tokens < 1:
        raise WireError(f"{request.max_tokens} is less than 1", param="max_tokens")
    execution = ExecutionOptions(
        sampling=sampling_overrides(
            temperature=request.temperature,
            top_p=request.top_p,
            top_k=None if request.top_k is None else min(max(request.top_k, 0), 20),
            seed=request.seed,
            defaults=defaults.sampling,
        ),
        requested_output_tokens=request.max_tokens or defaults.output_tokens,
        thinking=ThinkingOptions(defaults.budget(_budget(request))),
    )
    options = RequestOptions(
        constraint=held.constraint if held else None,
        tool_choice=_tool_choice(request),
        execution=execution,
        stop=StopPolicy(strings=_stops(request)),
        phase_timings=True,
    )
    placed = prompt_of(request, defaults)
    fields = prompt_fields(placed, held.field if held else None)
    return Translated(placed.prompt, options, fields)


def prompt_fields(placed: PlacedPrompt, constraint: str | None = None) -> Fields:
    """Return how errors name the fields of a request with this prompt."""
    tools = tuple(
        ToolField(tool.name, f"tools[{index}].input_schema")
        for index, tool in enumerate(placed.prompt.options.tools)
    )
    return Fields(constraint, _OPTION_FIELDS, placed.places, tools)


def prompt_of(request: MessagesRequest, defaults: AnswerDefaults) -> PlacedPrompt:
    """Return the prompt alone; a final assistant message is continued.

    Raises: WireError — a message, a tool or a thinking option is not served.
    """
    continues = bool(request.messages) and request.messages[-1].role == "assistant"
    effort = request.output_config.effort if request.output_config else None
    options = PromptOptions(
        continuation=(
            Continuation.CONTINUE_FINAL_ASSISTANT if continues else Continuation.NEW_ASSISTANT_TURN
        ),
        enable_thinking=_enable_thinking(request, effort, defaults, continues=continues),
        reasoning_effort=reasoning_effort(effort, "output_config.effort"),
        preserve_thinking=defaults.preserve_thinking,
        tools=tuple(_tools(request)),
    )
    return PlacedPrompt.of(conversation(request.system, request.messages), options)


def _format(request: MessagesRequest) -> FieldConstraint | None:
    format = request.output_config.format if request.output_config else None
    if format is None:
        return None
    if format.type != "json_schema":
        fact = f"{format.type!r} is not served, only json_schema"
        raise WireError(fact, param="output_config.format.type")
    schema = raw_text(format.schema)
    if schema is None:
        place = "output_config.format.schema"
        raise WireError("required field is missing", param=place, code="missing_field")
    constraint = OutputConstraint.json_schema(schema)
    return FieldConstraint("output_config.format.schema", constraint)


def _stops(request: MessagesRequest) -> tuple[StopString, ...]:
    return stop_strings(
        request.stop_sequences or [],
        field="stop_sequences",
        limit=_STOP_LIMIT,
        channels=(Channel.CONTENT,),
    )


def _enable_thinking(
    request: MessagesRequest, effort: str | None, defaults: AnswerDefaults, *, continues: bool
) -> bool | None:
    if request.thinking is None:
        return False if continues else defaults.thinking(None, effort)
    kind = request.thinking.type
    if kind not in ("disabled", "adaptive", "enabled"):
        fact = f"{kind!r} is not one of disabled, adaptive, enabled"
        raise WireError(fact, param="thinking.type")
    return {"disabled": False, "adaptive": None, "enabled": True}[kind]


def _budget(request: MessagesRequest) -> int | None:
    thinking = request.thinking
    if thinking is None or thinking.type != "enabled":
        return None
    budget = thinking.budget_tokens
    if budget is None or budget < _THINKING_BUDGET_MINIMUM:
        fact = f"at least {_THINKING_BUDGET_MINIMUM} is required with type enabled"
        raise WireError(fact, param="thinking.budget_tokens")
    if request.max_tokens is not None and budget >= request.max_tokens:
        raise WireError("must be less than max_tokens", param="thinking.budget_tokens")
    return budget


def _tools(request: MessagesRequest) -> list[ToolDeclaration]:
    declared = []
    for index, tool in enumerate(request.tools or []):
        if tool.type not in (None, "custom"):
            fact = f"{tool.type!r} tools are not served, only your own"
            raise WireError(fact, param=f"tools[{index}].type", code="tool_type_not_supported")
        function = FunctionDeclaration(tool.name, tool.description, tool.input_schema, tool.strict)
        declared.append(declare(function))
    return declared


def _tool_choice(request: MessagesRequest) -> ToolChoice:
    choice, constraints = request.tool_choice, request.tool_constraints
    if choice is None:
        return tool_policy(ToolMode.AUTO, None, parallel=None, constraints=constraints)
    parallel = not choice.disable_parallel_tool_use
    modes = {"auto": ToolMode.AUTO, "any": ToolMode.REQUIRED, "none": ToolMode.NONE}
    if choice.type in modes:
        mode = modes[choice.type]
        return tool_policy(mode, None, parallel=parallel, constraints=constraints)
    if choice.type == "tool" and choice.name:
        names = (choice.name,)
        return tool_policy(ToolMode.REQUIRED, names, parallel=parallel, constraints=constraints)
    fact = f"{choice.type!r} is not one of auto, any, none, or tool with a name"
    raise WireError(fact, param="tool_choice.type")
