"""All rows of a round in one call: equal to single rows, row by row, from any thread."""

import threading

import pytest

from ninfer.contract import InvalidMask, PendingPreview, RowMismatch
from ninfer.text import lookahead_batch
from support.grammars import EBNF, EOS, WORD, grammar, matcher
from support.masks import advance, allowed_tokens, mask_buffer, masks_along, tokens_of

A, B, C, D = b"abcd"
ROWS = [
    ("letters", [A, B, C]),
    ("boolean", []),
    ("boolean", [WORD[b"true"], EOS[0], A]),
    ("trap", [A, B, C]),
    (None, [A, A]),
    ("nested", [WORD[b"[["], WORD[b"1]"], WORD[b"],"], ord("x"), ord("1")]),
    ("text", [ord('"'), WORD["上".encode()]]),
]
POSITIONS = 7


def batch():
    return [None if name is None else matcher(name) for name, _ in ROWS], [d for _, d in ROWS]


@pytest.mark.parametrize("threads", [1, 2, 16])
def test_a_batch_equals_its_rows_one_by_one(threads):
    matchers, drafts = batch()
    masks = mask_buffer(len(ROWS), POSITIONS, 9, fill=0xA5)
    found = lookahead_batch(matchers, drafts, masks, threads)
    for row, (name, tokens) in enumerate(ROWS):
        if name is None:
            assert found[row] is None
            continue
        single, expected = masks_along(matcher(name), tokens)
        assert found[row] == single
        got = [tokens_of(masks, row, position) for position in range(len(tokens) + 1)]
        assert got == expected


def test_rows_without_a_matcher_and_positions_past_the_drafts_are_untouched():
    matchers, drafts = batch()
    masks = mask_buffer(len(ROWS), POSITIONS, 9, fill=0xA5)
    lookahead_batch(matchers, drafts, masks)
    rows = masks.cast("B").tobytes()
    for row, (name, tokens) in enumerate(ROWS):
        first = row * POSITIONS + (0 if name is None else len(tokens) + 1)
        assert set(rows[36 * first : 36 * (row + 1) * POSITIONS]) == {0xA5}


def test_more_mask_rows_than_matchers_are_allowed_and_fewer_are_not():
    matchers, drafts = batch()
    lookahead_batch(matchers, drafts, mask_buffer(len(ROWS) + 3, POSITIONS, 9))
    with pytest.raises(InvalidMask):
        lookahead_batch(matchers, drafts, mask_buffer(len(ROWS) - 1, POSITIONS, 9))
    with pytest.raises(RowMismatch):
        lookahead_batch(matchers, drafts[1:], mask_buffer(len(ROWS), POSITIONS, 9))
    with pytest.raises(ValueError, match="threads"):
        lookahead_batch(matchers, drafts, mask_buffer(len(ROWS), POSITIONS, 9), 0)


def test_an_empty_batch_is_no_work():
    assert lookahead_batch([], [], mask_buffer(1, 1, 9)) == []


@pytest.mark.parametrize("bad", ["pending", "drafts", "type", "twice"])
def test_one_bad_row_stops_the_call_before_any_row_moves(bad):
    matchers, drafts = batch()
    errors = {"pending": PendingPreview, "drafts": InvalidMask, "type": TypeError}
    if bad == "pending":
        matchers[3].preview([A])
    elif bad == "drafts":
        drafts[3] = [A] * POSITIONS
    elif bad == "type":
        drafts[3] = [A, None]
    else:
        matchers[3] = matchers[0]
    before = [m and allowed_tokens(m) for m in matchers if m is not matchers[3]]
    with pytest.raises(errors.get(bad, Exception)):
        lookahead_batch(matchers, drafts, mask_buffer(len(ROWS), POSITIONS, 9))
    assert [m and allowed_tokens(m) for m in matchers if m is not matchers[3]] == before
    if bad == "pending":
        matchers[3].discard()
    assert allowed_tokens(matchers[3])


def test_extents_of_zero_one_and_many_stand_in_one_batch():
    matchers = [matcher("letters") for _ in range(3)]
    masks = mask_buffer(3, 16, 9, fill=0xA5)
    found = lookahead_batch(matchers, [[], [A], [A] * 15], masks)
    assert [f.positions for f in found] == [1, 2, 16]
    assert [f.filled for f in found] == [1, 2, 16]
    assert tokens_of(masks, 0, 0) == tokens_of(masks, 1, 1) == tokens_of(masks, 2, 15)


def test_threads_of_python_share_grammars_but_no_matchers():
    names = sorted(EBNF)
    expected = {name: masks_along(matcher(name), [A, A, A]) for name in names}
    failures = []

    def work(shift):
        for turn in range(60):
            name = names[(turn + shift) % len(names)]
            at = matcher(name)
            if masks_along(at, [A, A, A]) != expected[name]:
                failures.append(name)

    threads = [threading.Thread(target=work, args=(shift,)) for shift in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert grammar("letters").memory_bytes > 0


def test_rows_of_one_grammar_at_different_positions_do_not_mix():
    matchers = [matcher("nested") for _ in range(8)]
    for depth, at in enumerate(matchers):
        advance(at, [ord("[")] * depth)
    masks = mask_buffer(8, 3, 9)
    drafts = [[ord("1"), EOS[0] if depth == 0 else ord("]")] for depth in range(8)]
    found = lookahead_batch(matchers, drafts, masks, 4)
    for depth, at in enumerate(matchers):
        single, expected = masks_along(at, drafts[depth])
        assert single == found[depth]
        assert [tokens_of(masks, depth, i) for i in range(3)] == expected
