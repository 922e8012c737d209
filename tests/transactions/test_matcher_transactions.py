"""One matcher, one transaction at a time: what each operation changes and what it leaves alone."""

from pathlib import Path

import pytest

from ninfer.contract import InvalidMask, PendingPreview, TokenMatcher
from support.grammars import CONTROL, EOS, UNUSED, VOCABULARY, WORD, matcher
from support.masks import advance, allowed_tokens, mask_buffer, masks_along

A, B, C, D = b"abcd"


def test_the_matcher_is_the_contracts_matcher():
    checked: TokenMatcher = matcher("letters")
    assert not checked.terminated


def test_a_preview_counts_the_tokens_before_the_first_refused_one():
    at = matcher("letters")
    assert at.preview([A, WORD[b"bc"], ord("x"), A]) == 2


def test_a_committed_preview_moves_the_position():
    at, fresh = matcher("letters"), matcher("letters")
    at.preview([A, D])
    at.commit()
    advance(fresh, [A, D])
    assert allowed_tokens(at) == allowed_tokens(fresh) == frozenset(EOS)


def test_a_discarded_preview_leaves_no_trace():
    at = matcher("letters")
    before = allowed_tokens(at)
    at.preview([A, D, EOS[0]])
    assert at.terminated
    at.discard()
    assert not at.terminated
    assert allowed_tokens(at) == before


def test_a_preview_without_a_taken_token_still_has_to_be_resolved():
    at = matcher("letters")
    assert at.preview([ord("x")]) == 0
    with pytest.raises(PendingPreview):
        at.lookahead([], mask_buffer(1, at.mask_words))
    at.discard()
    assert allowed_tokens(at)


@pytest.mark.parametrize("resolve", ["commit", "discard"])
def test_resolving_nothing_changes_nothing(resolve):
    at = matcher("letters")
    advance(at, [A])
    before = allowed_tokens(at)
    getattr(at, resolve)()
    assert allowed_tokens(at) == before


@pytest.mark.parametrize("call", ["lookahead", "preview", "feed"])
def test_nothing_starts_while_a_preview_is_unresolved(call):
    at = matcher("letters")
    at.preview([A])
    calls = {
        "lookahead": lambda: at.lookahead([], mask_buffer(1, at.mask_words)),
        "preview": lambda: at.preview([A]),
        "feed": lambda: at.feed(b"a"),
    }
    with pytest.raises(PendingPreview):
        calls[call]()
    at.discard()
    assert at.preview([A]) == 1


def test_a_preview_stops_after_an_accepted_end():
    at = matcher("boolean")
    assert at.preview([WORD[b"true"], EOS[0], A, EOS[1]]) == 2
    at.commit()
    assert at.terminated
    assert at.preview([A]) == 0


def test_no_end_is_taken_before_the_language_may_end():
    at = matcher("boolean")
    advance(at, [WORD[b"tr"]])
    assert [at.preview([end]) for end in EOS[:1]] == [0]
    at.discard()
    assert not at.can_end


@pytest.mark.parametrize("token", [*CONTROL, *UNUSED, -1, len(VOCABULARY.pieces), 1 << 40])
def test_ids_without_text_are_never_taken(token, capfd):
    at = matcher("anything")
    assert at.preview([token]) == 0
    at.discard()
    advance(at, [A])
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("tokens", [["a"], [None], [A, 2.5], [1 << 80]])
def test_tokens_that_are_not_ids_leave_no_trace(tokens):
    at = matcher("letters")
    before = allowed_tokens(at)
    for call in (at.preview, lambda ids: at.lookahead(ids, mask_buffer(4, at.mask_words))):
        with pytest.raises((TypeError, OverflowError)):
            call(tokens)
    assert allowed_tokens(at) == before


@pytest.mark.parametrize(
    ("axes", "code"), [((2, 8), "i"), ((3, 9), "i"), ((27,), "i"), ((3, 9), "I"), ((3, 9), "f")]
)
def test_masks_of_another_shape_or_type_are_refused_before_anything_moves(axes, code):
    at = matcher("letters")
    assert at.mask_words == 9
    masks = mask_buffer(*axes).cast("B").cast(code, axes)
    before = allowed_tokens(at)
    if axes == (3, 9) and code == "i":
        drafts = [A] * 3
    else:
        drafts = [A] * 2
    with pytest.raises(InvalidMask):
        at.lookahead(drafts, masks)
    assert allowed_tokens(at) == before


def test_read_only_masks_are_refused():
    at = matcher("letters")
    with pytest.raises(BufferError):
        at.lookahead([], mask_buffer(1, at.mask_words).toreadonly())


def test_more_drafts_than_bits_are_refused():
    at = matcher("letters")
    with pytest.raises(InvalidMask, match="at most 63"):
        at.lookahead([A] * 64, mask_buffer(65, at.mask_words))
    found, masks = masks_along(at, [A] * 63)
    assert found.reachable == found.filled == 64
    assert len(set(masks)) == 1


def test_feeding_moves_by_bytes_and_counts_them():
    at = matcher("nested")
    assert at.feed(b"[1,") == 3
    assert at.feed(b"[x") == 1
    fresh = matcher("nested")
    advance(fresh, [WORD[b"["] if b"[" in WORD else ord("["), WORD[b"1,"], ord("[")])
    assert allowed_tokens(at) == allowed_tokens(fresh)


def test_feeding_may_stop_inside_a_character():
    at = matcher("text")
    assert at.feed('"é'.encode()[:2]) == 2
    assert allowed_tokens(at) == {0x80 + i for i in range(64)} | {WORD[b"\xa9x"]}
    assert at.feed(b"\xa9") == 1


def test_nul_bytes_are_bytes_like_others():
    at = matcher("anything")
    assert at.feed(b"a\x00b") == 3


def test_feeding_nothing_or_after_the_end_takes_nothing():
    at = matcher("boolean")
    assert at.feed(b"") == 0
    advance(at, [WORD[b"true"], EOS[1]])
    assert at.feed(b"t") == 0


def test_an_empty_language_word_can_end_at_once():
    at = matcher("empty")
    assert at.can_end
    assert allowed_tokens(at) == frozenset(EOS)
    advance(at, [EOS[0]])
    assert at.can_end
    assert at.terminated


def test_work_is_counted_and_placeholders_are_not():
    at = matcher("boolean")
    assert (at.mask_positions, at.mask_seconds) == (0, 0)
    masks_along(at, [A, A])
    masks_along(at, [WORD[b"true"], EOS[0], A])
    assert at.mask_positions == 1 + 2
    assert at.mask_seconds > 0
    assert at.matcher_seconds > 0


def test_a_matcher_without_a_grammar_is_refused():
    from ninfer.text import CompiledGrammar, Matcher

    with pytest.raises(Exception, match="not compiled"):
        Matcher(CompiledGrammar())
    with pytest.raises(TypeError):
        Matcher(None)
    with pytest.raises(Exception, match="mark"):
        Matcher.__new__(Matcher).lookahead([], mask_buffer(1, 1))


def test_work_that_is_undone_leaves_no_memory_behind():
    at = matcher("nested")
    advance(at, b"[[1,")
    masks = mask_buffer(4, at.mask_words)

    def turns(count):
        for _ in range(count):
            at.lookahead([WORD[b"[["], ord("1"), WORD[b"]]"]], masks)
            at.preview([WORD[b"[["], ord("1")])
            at.discard()
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    settled = turns(2_000)
    assert turns(10_000) - settled < 2 << 20
