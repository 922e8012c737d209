"""Token usage and timings of a finished request, as OpenAI and llama.cpp clients read them."""

from __future__ import annotations

from ninfer.contract import GenerationResult
from ninfer.runtime import TimingSnapshot


def chat_usage(result: GenerationResult) -> dict[str, object]:
    """Return Chat's ``usage`` object."""
    prompt, completion = result.prompt.prompt_tokens, len(result.generated_token_ids)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": result.reused_prompt_tokens},
        "completion_tokens_details": {"reasoning_tokens": result.output.reasoning_tokens},
    }


def final_timings(result: GenerationResult) -> dict[str, float]:
    """Return the ``timings`` object of a finished request."""
    return timings(
        TimingSnapshot(
            reused_prompt_tokens=result.reused_prompt_tokens,
            computed_prefill_tokens=result.computed_prefill_tokens,
            generated_tokens=len(result.generated_token_ids),
            prefill=result.timings.prefill,
            decode=result.timings.decode,
            drafted_tokens=result.speculative.drafted_tokens,
            accepted_tokens=result.speculative.accepted_tokens,
        )
    )


def timings(spent: TimingSnapshot) -> dict[str, float]:
    """Return the ``timings`` object in milliseconds; the first token is the prompt's."""
    computed, later = spent.computed_prefill_tokens, max(spent.generated_tokens - 1, 0)
    return {
        "cache_n": spent.reused_prompt_tokens,
        "prompt_n": computed,
        "prompt_ms": spent.prefill * 1e3,
        "prompt_per_token_ms": spent.prefill * 1e3 / computed if computed else 0.0,
        "prompt_per_second": computed / spent.prefill if spent.prefill > 0 else 0.0,
        "predicted_n": spent.generated_tokens,
        "predicted_ms": spent.decode * 1e3,
        "predicted_per_token_ms": spent.decode * 1e3 / later if later else 0.0,
        "predicted_per_second": later / spent.decode if spent.decode > 0 else 0.0,
        "draft_n": spent.drafted_tokens,
        "draft_n_accepted": spent.accepted_tokens,
    }
