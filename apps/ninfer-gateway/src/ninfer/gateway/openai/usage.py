"""Token usage and timings of a finished request, as OpenAI and llama.cpp clients read them."""

from __future__ import annotations

from ninfer.contract import GenerationResult


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


def timings(result: GenerationResult) -> dict[str, float]:
    """Return the terminal ``timings`` object; times are milliseconds."""
    spent, computed = result.timings, result.computed_prefill_tokens
    later = max(len(result.generated_token_ids) - 1, 0)
    return {
        "cache_n": result.reused_prompt_tokens,
        "prompt_n": computed,
        "prompt_ms": spent.prefill * 1e3,
        "prompt_per_token_ms": spent.prefill * 1e3 / computed if computed else 0.0,
        "prompt_per_second": computed / spent.prefill if spent.prefill > 0 else 0.0,
        "predicted_n": len(result.generated_token_ids),
        "predicted_ms": spent.decode * 1e3,
        "predicted_per_token_ms": spent.decode * 1e3 / later if later else 0.0,
        "predicted_per_second": result.tokens_per_second,
        "draft_n": result.speculative.drafted_tokens,
        "draft_n_accepted": result.speculative.accepted_tokens,
    }
