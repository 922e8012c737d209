"""Checkpoints of a prompt lie where later prompts part from it, and cost few passes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ninfer.contract import ChatPrompt, Message, PromptOptions, Role
from ninfer.runtime.program.checkpoint_places import (
    NEAR_TOKENS,
    TAIL_TOKENS,
    checkpoint_places,
)
from ninfer.runtime.program.prefix_cache import shared_tokens
from support.qwen import qwen_frontend

TURNS = ("What is a page?", "Sixty-four tokens.", "And of what are they?", "Keys and values.")


@st.composite
def prompts(draw: st.DrawFn) -> tuple[int, int, int, int]:
    """Return start, shared tokens, end and chunk of a prompt."""
    end = draw(st.integers(1, 400))
    shared = draw(st.integers(0, end))
    return draw(st.integers(0, shared)), shared, end, draw(st.integers(1, 500))


@given(prompts())
def test_places_are_few_and_near_enough(asked: tuple[int, int, int, int]) -> None:
    start, shared, end, chunk = asked
    places = checkpoint_places(*asked)
    assert places == tuple(sorted(set(places)))
    assert all(start < place <= end for place in places)
    assert (end in places) == (end > start)
    chunk_ends = {min(begin + chunk, end) for begin in range(start, end, chunk)}
    is_parting = start + NEAR_TOKENS <= shared // 64 * 64 < end
    assert len(set(places) - chunk_ends) <= 1 + is_parting
    before = max(place for place in (start, *places, 0) if place <= max(end - TAIL_TOKENS, start))
    assert before >= end - max(NEAR_TOKENS, TAIL_TOKENS)
    if is_parting:
        assert shared // 64 * 64 in places


@pytest.mark.parametrize(
    ("asked", "places"),
    [
        ((0, 0, 60, 1024), (60,)),
        ((0, 0, 65, 1024), (49, 65)),
        ((0, 0, 100, 24), (72, 100)),
        ((900, 930, 1000, 1024), (984, 1000)),
        ((940, 990, 1000, 1024), (1000,)),
        ((1000, 1000, 1000, 1024), ()),
        ((0, 700, 1000, 1024), (640, 984, 1000)),
        ((0, 970, 1000, 1024), (960, 1000)),
    ],
)
def test_known_prompts(asked: tuple[int, int, int, int], places: tuple[int, ...]) -> None:
    assert checkpoint_places(*asked) == places


def turns(texts: tuple[str, ...], thinking: bool) -> list[int]:
    roles = (Role.USER, Role.ASSISTANT)
    messages = tuple(Message(roles[place % 2], text) for place, text in enumerate(texts))
    options = PromptOptions(enable_thinking=thinking)
    return list(qwen_frontend().prepare(ChatPrompt(messages, options)).token_ids)


@pytest.mark.parametrize("thinking", [True, False])
def test_a_next_turn_parts_after_the_place_before_the_end(thinking: bool) -> None:
    first, second = turns(TURNS[:1], thinking), turns(TURNS[:3], thinking)
    shared = shared_tokens(np.array(first), np.array(second))
    assert len(first) - TAIL_TOKENS <= shared < len(first)
