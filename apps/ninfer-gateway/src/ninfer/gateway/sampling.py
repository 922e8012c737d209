"""Sampling fields that every protocol spells alike."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from ninfer.contract import TOP_K_LIMIT, Channel, SamplingOverrides, StopString
from ninfer.gateway.failure import WireError

Number = TypeVar("Number", int, float)


def sampling_overrides(
    *,
    temperature: float | None,
    top_p: float | None,
    top_k: int | None = None,
    min_p: float | None = None,
    presence_penalty: float | None = None,
    frequency_penalty: float | None = None,
    seed: int | None = None,
    defaults: SamplingOverrides,
) -> SamplingOverrides:
    """Return what a request sets, or its server; without a seed of either it gets a fresh one.

    Raises: WireError — ``top_k`` is above the limit that candidates always have.
    """
    if top_k is not None and not 0 <= top_k <= TOP_K_LIMIT:
        fact = f"{top_k} is not in 0..{TOP_K_LIMIT}"
        raise WireError(fact, param="top_k")
    chosen = SamplingOverrides(
        temperature=_first(temperature, defaults.temperature),
        top_p=_first(top_p, defaults.top_p),
        top_k=_first(top_k, defaults.top_k),
        min_p=_first(min_p, defaults.min_p),
        presence_penalty=_first(presence_penalty, defaults.presence_penalty),
        frequency_penalty=_first(frequency_penalty, defaults.frequency_penalty),
        seed=_first(None if seed is None else seed & (1 << 64) - 1, defaults.seed),
    )
    return replace(chosen, seed=secrets.randbits(64)) if chosen.seed is None else chosen


def _first(asked: Number | None, default: Number | None) -> Number | None:
    return default if asked is None else asked


def stop_strings(
    texts: list[str], *, field: str, limit: int, channels: Iterable[Channel] = Channel
) -> tuple[StopString, ...]:
    """Return stop strings, which act in the answer and in what the model thinks.

    Every token of every request waits while one request's stop strings are looked for.
    Raises: WireError — there are more than ``limit``, or one is empty.
    """
    if len(texts) > limit:
        raise WireError(f"{len(texts)} are given, {limit} at most", param=field)
    if "" in texts:
        raise WireError("an empty text never stops", param=f"{field}[{texts.index('')}]")
    return tuple(StopString(text, channel) for text in texts for channel in channels)


def output_tokens(requested: int | None, default: int, *, field: str) -> int:
    """Return how many tokens to generate; 0 processes the prompt only.

    Raises: WireError — the number is negative.
    """
    if requested is None:
        return default
    if requested < 0:
        raise WireError(f"{requested} is negative", param=field)
    return requested
