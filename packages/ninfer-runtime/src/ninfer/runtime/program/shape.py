"""The fixed capacities of a program, from a model and an engine's options."""

from __future__ import annotations

from ninfer.contract import (
    MOST_DRAFTS,
    EngineOptions,
    ProgramShape,
    SpeculativeBackend,
    UnsupportedOption,
)
from ninfer.runtime.loading import LoadedModel
from ninfer.runtime.models.kv_pool import PAGE_TOKENS
from ninfer.runtime.program.kv_room import pages_for


def program_shape(
    model: LoadedModel, options: EngineOptions, drafter: SpeculativeBackend | None = None
) -> ProgramShape:
    """Return what a program for this model, with such a drafter, will hold.

    Math:   context = min(max_context, the model's own); KV pages = kv_tokens rounded up to pages,
            or every row's whole context.
    Raises: ValueError — kv_tokens do not hold one context; UnsupportedOption — the model has no
            such drafter, or the number of drafts is none that it can make.
    """
    draft_limit = _draft_limit(options, drafter)
    context = min(options.max_context, model.decoder.config.context_tokens)
    if options.kv_tokens is None:
        pages = options.max_concurrency * pages_for(context)
    else:
        pages = pages_for(options.kv_tokens)
        _require_context(context, options.kv_tokens)
    return ProgramShape(
        rows=options.max_concurrency,
        draft_limit=draft_limit,
        token_domain=model.facts.token_domain,
        context_tokens=context,
        kv_tokens=pages * PAGE_TOKENS,
        prefill_chunk_tokens=options.prefill_chunk,
    )


def _require_context(context: int, kv_tokens: int) -> None:
    if kv_tokens < context:
        raise ValueError(
            f"kv_tokens: {kv_tokens} tokens hold no context of {context}: "
            f"{context - kv_tokens} are missing"
        )


def _draft_limit(options: EngineOptions, drafter: SpeculativeBackend | None) -> int:
    wanted = options.speculative
    if wanted is not (drafter or SpeculativeBackend.NONE):
        found = "no drafter" if drafter is None else f"a {drafter.value} drafter"
        raise UnsupportedOption(f"speculative: {wanted.value}, but the model has {found}")
    lowest, highest = (0, 0) if drafter is None else (1, MOST_DRAFTS)
    if not lowest <= options.draft_tokens <= highest:
        raise UnsupportedOption(
            f"draft_tokens: {options.draft_tokens} is not in {lowest}..{highest} for speculation by"
            f" {wanted.value}"
        )
    return options.draft_tokens
