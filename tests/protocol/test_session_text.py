"""Bytes to characters, and stop strings: whatever is cut where."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ninfer.contract import Channel, FinishReason, IntegrityError, StopString
from ninfer.qwen_frontend.overlap import overlap
from ninfer.qwen_frontend.stops import DeclaredStop, StopScanner
from ninfer.qwen_frontend.utf8 import Utf8Decoder
from support.sessions import build_session, byte_vocabulary, drive, spell

VOCABULARY = byte_vocabulary()
EOS, OTHER_EOS = VOCABULARY.eos_ids
IM_START = OTHER_EOS + 1


def token(piece: bytes) -> int:
    return VOCABULARY.pieces.index(piece)


@given(st.lists(st.binary(max_size=5) | st.text(max_size=3).map(str.encode), max_size=12))
def test_pieces_decode_as_the_whole_would(pieces):
    decoder = Utf8Decoder()
    text = ""
    for piece in pieces:
        fork = decoder.fork()
        published = decoder.decode(piece)
        assert fork.decode(piece) == published
        text += published
    assert text + decoder.finish() == b"".join(pieces).decode("utf-8", "replace")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xff", "�"),
        ("上".encode()[:2], "�"),
        ("😀".encode()[:3], "�"),
        (b"\xe0\x80\x80", "���"),
        (b"\xed\xa0\x80", "���"),
        (b"\xf4\x90\x80\x80", "����"),
        (b"\xe4\xb8a", "�a"),
    ],
)
def test_malformed_maximal_subparts_become_one_replacement_each(data, text):
    transcript = drive(build_session(VOCABULARY), [*data, EOS])
    assert transcript.content == text
    assert transcript.finish is FinishReason.STOP_TOKEN


def test_a_fork_shares_no_pending_bytes():
    decoder = Utf8Decoder()
    decoder.decode("上".encode()[:2])
    fork = decoder.fork()
    assert fork.decode(b"a") == "�a"
    assert decoder.is_inside_character
    assert decoder.decode("上".encode()[2:]) == "上"


@given(st.text("ab", max_size=12), st.text("ab", min_size=1, max_size=6))
def test_overlap_is_the_longest_proper_prefix_at_the_end(text, pattern):
    expected = max(n for n in range(min(len(text) + 1, len(pattern))) if text.endswith(pattern[:n]))
    assert overlap(text, pattern) == expected


@given(
    st.text("abc", max_size=20),
    st.lists(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=3),
    st.data(),
)
def test_stop_strings_end_the_text_at_the_first_character_that_completes_one(text, stops, data):
    declared = [StopString(s, include_in_output=data.draw(st.booleans())) for s in stops]
    transcript = drive(build_session(VOCABULARY, stops=declared), [*spell(VOCABULARY, text), EOS])
    ends = [n for n in range(1, len(text) + 1) if any(text[:n].endswith(s) for s in stops)]
    if not ends:
        assert (transcript.content, transcript.finish) == (text, FinishReason.STOP_TOKEN)
        return
    shown = text[: ends[0]]
    winner = max((d for d in declared if shown.endswith(d.text)), key=lambda d: len(d.text))
    same = [d for d in declared if d.text == winner.text]
    assert transcript.finish is FinishReason.STOP_STRING
    assert transcript.accepted == ends[0]
    assert transcript.output.matched_stop_string == winner.text
    cut = shown if same[0].include_in_output else shown.removesuffix(winner.text)
    assert transcript.content == cut == transcript.output.content


@given(st.text("abc", max_size=20), st.lists(st.integers(1, 4), max_size=8))
def test_nothing_published_is_ever_taken_back_by_a_stop_string(text, sizes):
    scanner = StopScanner((DeclaredStop(0, StopString("abcab")), DeclaredStop(1, StopString("ca"))))
    published, at = "", 0
    for size in [*sizes, len(text)]:
        piece, match = scanner.feed(text[at : at + size])
        published, at = published + piece, at + size
        assert text.startswith(published)
        if match:
            return
    assert published + scanner.finish() == text


def test_the_earliest_start_wins_among_stops_completed_by_one_token():
    stops = [StopString("t"), StopString("to"), StopString("st")]
    transcript = drive(build_session(VOCABULARY, stops=stops), [token(b"stop"), EOS])
    assert transcript.output.matched_stop_string == "st"
    assert transcript.content == ""


def test_the_first_declared_wins_among_stops_that_start_together():
    stops = [StopString("to", include_in_output=True), StopString("t")]
    transcript = drive(build_session(VOCABULARY, stops=stops), [token(b"stop")])
    assert transcript.output.matched_stop_string == "to"
    assert transcript.content == "sto"


def test_a_stop_string_beats_the_stop_token_that_completes_it():
    session = build_session(
        VOCABULARY,
        stops=[StopString("END")],
        stop_ids=[token(b"END")],
        publish_stop_token=True,
        limit=1,
    )
    assert drive(session, [token(b"END")]).finish is FinishReason.STOP_STRING


def test_a_stop_token_beats_the_output_limit_and_hides_its_text():
    session = build_session(VOCABULARY, stop_ids=[token(b"END")], limit=2)
    transcript = drive(session, [ord("a"), token(b"END")])
    assert transcript.finish is FinishReason.STOP_TOKEN
    assert transcript.content == "a"


@pytest.mark.parametrize("eos", [EOS, OTHER_EOS])
@pytest.mark.parametrize("published", [True, False])
def test_every_end_mark_ends_the_answer_and_shows_only_on_request(eos, published):
    session = build_session(VOCABULARY, publish_stop_token=published)
    transcript = drive(session, [ord("a"), eos, ord("b")], rounds=[3])
    assert transcript.accepted == 2
    assert transcript.content == "a" + (VOCABULARY.pieces[eos].decode() if published else "")


@pytest.mark.parametrize(("preserved", "text"), [(False, "ab"), (True, "a<|im_start|>b")])
def test_control_marks_are_hidden_unless_preserved(preserved, text):
    session = build_session(VOCABULARY, preserve_specials=preserved)
    assert drive(session, [ord("a"), IM_START, ord("b"), EOS]).content == text


def test_the_limit_names_its_own_reason_and_flushes_a_cut_character():
    session = build_session(VOCABULARY, limit=2, limit_reason=FinishReason.CONTEXT_CAPACITY)
    transcript = drive(session, [ord("a"), token("上".encode()[:2])])
    assert transcript.finish is FinishReason.CONTEXT_CAPACITY
    assert transcript.content == "a�"


def test_held_back_text_is_published_when_the_answer_ends_without_the_stop():
    session = build_session(VOCABULARY, stops=[StopString("END")])
    session.preview(spell(VOCABULARY, "xEN"))
    assert [delta.text for delta in session.commit()] == ["x"]
    deltas, output = session.finish(FinishReason.CANCELLED)
    assert [(d.channel, d.text) for d in deltas] == [(Channel.CONTENT, "EN")]
    assert output.content == "xEN"


@pytest.mark.parametrize(
    ("tokens", "message"),
    [([], "without tokens"), ([97] * 4, "3 were left"), ([9999], "outside"), ([-1], "outside")],
)
def test_an_impossible_round_is_our_own_fault(tokens, message):
    session = build_session(VOCABULARY, limit=3)
    with pytest.raises(IntegrityError, match=message):
        session.preview(tokens)
    assert session.preview([97]).accepted_tokens == 1


def test_nothing_follows_the_end():
    session = build_session(VOCABULARY)
    session.preview([EOS])
    session.commit()
    assert session.remaining_model_tokens == 0
    with pytest.raises(IntegrityError, match="ended"):
        session.preview([97])
    session.finish(FinishReason.STOP_TOKEN)
    with pytest.raises(IntegrityError, match="finished before"):
        session.finish(FinishReason.STOP_TOKEN)
