"""The fixed capacities of a program, from a model and an engine's options."""

from __future__ import annotations

from ninfer.contract import EngineOptions, ProgramShape, SpeculativeBackend, UnsupportedOption
from ninfer.runtime.loading import LoadedModel
from ninfer.runtime.models.kv_pool import PAGE_TOKENS
from ninfer.runtime.program.kv_room import pages_for


def program_shape(model: LoadedModel, options: EngineOptions) -> ProgramShape:
    """Return what a program for this model will hold.

    Math:   context = min(max_context, the model's own, KV capacity); KV pages = kv_tokens rounded
            up to pages, or every row's whole context.
    Raises: UnsupportedOption — the model has no such speculative backend.
    """
    if options.speculative is not SpeculativeBackend.NONE:
        name = options.speculative.value
        raise UnsupportedOption(f"speculative: the model has no {name} drafter")
    context = min(options.max_context, model.decoder.config.context_tokens)
    if options.kv_tokens is None:
        pages = options.max_concurrency * pages_for(context)
    else:
        pages = pages_for(options.kv_tokens)
        context = min(context, options.kv_tokens)
    return ProgramShape(
        rows=options.max_concurrency,
        draft_limit=0,
        token_domain=model.facts.token_domain,
        context_tokens=context,
        kv_tokens=pages * PAGE_TOKENS,
        prefill_chunk_tokens=options.prefill_chunk,
    )
