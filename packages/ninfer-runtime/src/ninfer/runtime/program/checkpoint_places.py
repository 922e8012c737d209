"""At which token counts of a prompt a checkpoint is worth a copy, or even a pass of its own."""

from __future__ import annotations

from ninfer.runtime.models.kv_pool import PAGE_TOKENS

TAIL_TOKENS = 16
"""How far before a prompt's end the next turn may part from it.

A generation prompt, which the history of the next turn renders differently, has at most 7 tokens in
the templates that the frontend knows.
"""
NEAR_TOKENS = PAGE_TOKENS
"""Tokens that are computed again rather than saved by one more pass."""


def checkpoint_places(start: int, shared: int, end: int, chunk_tokens: int) -> tuple[int, ...]:
    """Return where a prompt of ``end`` tokens, computed from ``start`` on, leaves checkpoints.

    Math:   its end, from which the same prompt and the next turn go on; the last page boundary
            within the ``shared`` tokens that another text begins with too, because a third one will
            as well; and a place at least TAIL_TOKENS before the end, from which a next turn goes
            on that renders the generation prompt differently. The last needs no pass where a
            chunk ends, or the prompt starts, at most NEAR_TOKENS before the end anyway. So a prompt
            is computed in one pass more, and in two when it parts from another one for the first
            time at least NEAR_TOKENS after what it could start from.
    """
    parting = shared // PAGE_TOKENS * PAGE_TOKENS
    places = {end}
    if start + NEAR_TOKENS <= parting < end:
        places.add(parting)
    tail = end - TAIL_TOKENS
    if tail > start:
        boundary = tail - (tail - start) % chunk_tokens
        nearest = max(boundary, *(place for place in places if place <= tail), start)
        places.add(nearest if nearest >= end - NEAR_TOKENS else tail)
    return tuple(sorted(place for place in places if place > start))
