"""How long an answer may be and how it is sampled, from the request and the model's capacities."""

from __future__ import annotations

from ninfer.contract import (
    ContextLengthExceeded,
    FinishReason,
    InvalidOption,
    InvalidPrompt,
    OptionPath,
    ProgramShape,
    RequestOptions,
    SamplingParameters,
    preset_for,
)
from ninfer.runtime.prepared import Prepared

_REQUESTED = OptionPath("execution.requested_output_tokens")


def output_limit_for(
    prepared: Prepared, options: RequestOptions, shape: ProgramShape
) -> tuple[int, FinishReason]:
    """Return the most tokens the answer may have, and which bound that is.

    Math:   capacity = min(context, kv pool) − prompt; the smaller of it and the request wins.
    Raises: InvalidPrompt — an empty prompt or an id outside the domain; InvalidOption — a negative
            length; ContextLengthExceeded — the prompt leaves no room.
    """
    prompt_tokens = prepared.prompt_tokens
    if not prompt_tokens:
        raise InvalidPrompt("the prompt has no tokens")
    ids = prepared.prompt.token_ids
    if min(ids) < 0 or max(ids) >= shape.token_domain:
        raise InvalidPrompt(f"a token id is outside the domain of {shape.token_domain}")
    requested = options.execution.requested_output_tokens
    if requested is not None and requested < 0:
        raise InvalidOption(f"{requested} is negative", location=_REQUESTED)
    window = min(shape.context_tokens, shape.kv_tokens)
    needed = 0 if requested == 0 else 1
    if prompt_tokens + needed > window:
        raise ContextLengthExceeded(
            f"the prompt has {prompt_tokens} tokens; the context holds {window}"
        )
    capacity = window - prompt_tokens
    if requested is not None and requested <= capacity:
        return requested, FinishReason.OUTPUT_LIMIT
    return capacity, FinishReason.CONTEXT_CAPACITY


def resolve_sampling(prepared: Prepared, options: RequestOptions) -> SamplingParameters:
    """Return the request's sampling parameters over the preset that fits it.

    Raises: InvalidOption — a value is not finite or out of range.
    """
    structured = options.constraint is not None or prepared.prompt.has_tools
    preset = preset_for(thinking=prepared.prompt.starts_in_reasoning, structured=structured)
    return options.execution.sampling.resolve(preset)
