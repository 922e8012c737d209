"""Masks along a draft: equal to step-by-step masks, honest about where the path ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ninfer.contract import PositionState
from ninfer.text import Matcher
from support.grammars import CONTROL, EBNF, EOS, UNUSED, VOCABULARY, WORD, core, grammar, matcher
from support.masks import PLACEHOLDER, advance, allowed_tokens, masks_along

A, B, C, D = b"abcd"
READY, DEAD, FAR = PositionState.READY, PositionState.DEAD_END, PositionState.UNREACHABLE


@st.composite
def paths(draw):
    """Return a grammar, a committed path that is legal, and drafts that may leave the language."""
    name = draw(st.sampled_from(sorted(EBNF)))
    walker = matcher(name)
    committed = []
    for _ in range(draw(st.integers(0, 5))):
        legal = sorted(allowed_tokens(walker) - set(EOS))
        if not legal:
            break
        committed.append(draw(st.sampled_from(legal)))
        advance(walker, committed[-1:])
    drafts = []
    for _ in range(draw(st.integers(0, 6))):
        legal = sorted(allowed_tokens(walker))
        any_token = st.integers(0, len(VOCABULARY.pieces) - 1)
        choices = st.sampled_from(legal) if legal else any_token
        drafts.append(draw(st.one_of(choices, choices, any_token)))
        walker.preview(drafts[-1:])
        walker.commit()
    return name, committed, drafts


def step_by_step(name, committed, drafts):
    """Return state and allowed set of every position, each from a matcher of its own."""
    states = []
    for position in range(len(drafts) + 1):
        fresh = matcher(name)
        advance(fresh, committed)
        reached = fresh.preview(drafts[:position]) == position
        fresh.commit()
        if not reached or fresh.terminated:
            states.append((FAR, PLACEHOLDER))
            continue
        allowed = allowed_tokens(fresh)
        states.append((READY, allowed) if allowed else (DEAD, PLACEHOLDER))
    return states


@given(paths())
def test_masks_along_a_draft_equal_masks_step_by_step(path):
    name, committed, drafts = path
    at = matcher(name)
    advance(at, committed)
    found, masks = masks_along(at, drafts)
    states = [found.state(position) for position in range(len(drafts) + 1)]
    assert list(zip(states, masks, strict=True)) == step_by_step(name, committed, drafts)


@given(paths())
def test_a_lookahead_leaves_no_trace(path):
    name, committed, drafts = path
    at = matcher(name)
    advance(at, committed)
    before = (allowed_tokens(at), at.can_end, at.terminated)
    masks_along(at, drafts)
    assert (allowed_tokens(at), at.can_end, at.terminated) == before


@given(paths())
def test_a_draft_is_taken_exactly_where_its_mask_has_its_bit(path):
    name, committed, drafts = path
    at = matcher(name)
    advance(at, committed)
    found, masks = masks_along(at, drafts)
    legal = 0
    while legal < len(drafts) and found.state(legal) is READY and drafts[legal] in masks[legal]:
        legal += 1
    taken = at.preview(drafts)
    at.discard()
    assert taken == legal


@given(paths())
def test_only_text_and_ends_are_ever_allowed(path):
    name, committed, drafts = path
    at = matcher(name)
    advance(at, committed)
    _, masks = masks_along(at, drafts)
    impossible = {*CONTROL, *UNUSED} | {*range(VOCABULARY.token_domain, 32 * at.mask_words)}
    assert not any(mask & impossible for mask in masks)


def test_the_first_illegal_draft_keeps_the_mask_that_refuses_it():
    found, masks = masks_along(matcher("boolean"), [WORD[b"tr"], ord("x"), ord("u")])
    assert [found.state(i) for i in range(4)] == [READY, READY, FAR, FAR]
    assert masks[1] == {ord("u")}
    assert masks[2:] == [PLACEHOLDER] * 2
    assert found.filled == 2


@pytest.mark.parametrize("end", EOS)
def test_positions_after_an_end_are_unreachable(end):
    found, masks = masks_along(matcher("boolean"), [WORD[b"true"], end, ord("x"), end])
    assert [found.state(i) for i in range(5)] == [READY, READY, FAR, FAR, FAR]
    assert masks[1] == set(EOS)
    assert masks[2:] == [PLACEHOLDER] * 3


def test_a_dead_end_is_a_position_and_not_a_failure():
    at = matcher("trap")
    found, masks = masks_along(at, [A, B, C])
    assert [found.state(i) for i in range(4)] == [READY, READY, DEAD, FAR]
    assert masks[2:] == [PLACEHOLDER] * 2
    assert found.dead_ends == 0b100
    assert [found.is_dead_within(i) for i in range(4)] == [False, False, False, True]
    assert masks_along(at, [A, C])[1][2] == set(EOS)


def test_nothing_is_reachable_after_the_committed_end():
    at = matcher("boolean")
    advance(at, [WORD[b"true"], EOS[0]])
    found, masks = masks_along(at, [ord("x")])
    assert (found.reachable, found.filled, found.dead_ends) == (0, 0, 0)
    assert masks == [PLACEHOLDER] * 2


def test_the_last_position_may_be_the_sixty_fourth():
    at = Matcher(grammar("trap"))
    found, _ = masks_along(at, [A, B])
    assert found.dead_ends == 1 << 2
    found, masks = masks_along(matcher("letters"), [A] * 62 + [D])
    assert found.state(63) is READY
    assert masks[63] == set(EOS)


def test_bits_past_the_domain_stay_clear_where_everything_is_allowed():
    at = matcher("anything")
    advance(at, [A])
    allowed = allowed_tokens(at)
    assert max(allowed) == VOCABULARY.token_domain - 1 == EOS[-1]
    assert set(EOS) < allowed


def test_ends_are_allowed_exactly_where_the_language_may_end():
    # The core itself offers and takes an end inside an excluded-token terminal.
    at = Matcher(core().compile(f"root ::= ExcludeToken({A})\n"))
    assert not at.can_end
    assert not allowed_tokens(at) & set(EOS)
    assert at.preview([EOS[0]]) == 0
    at.discard()
    advance(at, [B])
    assert at.can_end
    assert allowed_tokens(at) == set(EOS)


@given(paths())
def test_either_all_ends_are_allowed_or_none(path):
    name, committed, _ = path
    at = matcher(name)
    advance(at, committed)
    offered = allowed_tokens(at) & set(EOS)
    assert offered == (set(EOS) if at.can_end else set())
