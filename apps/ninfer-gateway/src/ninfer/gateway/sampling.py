"""Sampling fields that every protocol spells alike."""

from __future__ import annotations

import secrets

from ninfer.contract import TOP_K_LIMIT, Channel, SamplingOverrides, StopString
from ninfer.gateway.failure import WireError

STOP_STRING_LIMIT = 4


def sampling_overrides(
    *,
    temperature: float | None,
    top_p: float | None,
    top_k: int | None = None,
    min_p: float | None = None,
    presence_penalty: float | None = None,
    frequency_penalty: float | None = None,
    seed: int | None = None,
) -> SamplingOverrides:
    """Return what a request sets; a request without a seed gets a fresh one.

    Raises: WireError — ``top_k`` is above the limit that candidates always have.
    """
    if top_k is not None and not 0 <= top_k <= TOP_K_LIMIT:
        fact = f"{top_k} is not in 0..{TOP_K_LIMIT}"
        raise WireError(fact, param="top_k")
    return SamplingOverrides(
        temperature=temperature,
        top_p=top_p,
        top_k=top_k,
        min_p=min_p,
        presence_penalty=presence_penalty,
        frequency_penalty=frequency_penalty,
        seed=secrets.randbits(64) if seed is None else seed & (1 << 64) - 1,
    )


def stop_strings(texts: list[str], *, field: str, limit: int | None) -> tuple[StopString, ...]:
    """Return stop strings that act in the answer and in what the model thinks.

    Raises: WireError — there are more than ``limit``, or one is empty.
    """
    if limit is not None and len(texts) > limit:
        raise WireError(f"{len(texts)} are given, {limit} at most", param=field)
    if "" in texts:
        raise WireError("an empty text never stops", param=f"{field}[{texts.index('')}]")
    return tuple(StopString(text, channel) for text in texts for channel in Channel)


def output_tokens(requested: int | None, default: int, *, field: str) -> int:
    """Return how many tokens to generate; 0 processes the prompt only.

    Raises: WireError — the number is negative.
    """
    if requested is None:
        return default
    if requested < 0:
        raise WireError(f"{requested} is negative", param=field)
    return requested
