"""Thinking: where it ends, what it may cost, and what happens at every boundary."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ninfer.contract import (
    Channel,
    FinishReason,
    IntegrityError,
    InvalidOption,
    NextAction,
    PendingPreview,
    StopString,
    ThinkingBudgetCapacity,
)
from ninfer.qwen_frontend.budget import OutputLimit, ThinkingBudget, plan_budget
from ninfer.qwen_frontend.control import closing_texts
from ninfer.qwen_frontend.facts import ReasoningMarkers
from ninfer.qwen_frontend.stages import CanonicalStage, FreeStage
from support.sessions import (
    build_session,
    byte_vocabulary,
    drive,
    spell,
    thinking_matcher,
)

VOCABULARY = byte_vocabulary()
EOS = VOCABULARY.eos_ids[0]
MARKERS = ReasoningMarkers()
CLOSE = MARKERS.canonical_close
CLOSINGS = tuple(tuple(text.encode()) for text in closing_texts(MARKERS))
SENTENCE = closing_texts(MARKERS)[0].removesuffix(CLOSE)


def token(piece: bytes) -> int:
    return VOCABULARY.pieces.index(piece)


def canonical(*, words=None, budget=None, **options):
    matcher = None if words is None else thinking_matcher(VOCABULARY, words)
    thinking = ThinkingBudget() if budget is None else ThinkingBudget(budget, budget, CLOSINGS)
    stage = CanonicalStage(MARKERS)
    return build_session(VOCABULARY, stage=stage, matcher=matcher, budget=thinking, **options)


def free(*, budget=None, **options):
    thinking = ThinkingBudget() if budget is None else ThinkingBudget(budget, budget, CLOSINGS)
    return build_session(VOCABULARY, stage=FreeStage(MARKERS), budget=thinking, **options)


@given(st.text("a\n</think> {", max_size=30), st.text("a\n</think> {", max_size=8))
def test_only_the_first_canonical_close_ends_constrained_thinking(before, after):
    text = before + CLOSE + after
    transcript = drive(canonical(), [*spell(VOCABULARY, text), EOS])
    reasoning, _, content = text.partition(CLOSE)
    assert (transcript.reasoning, transcript.content) == (reasoning, content)


@given(st.lists(st.sampled_from(range(256, len(VOCABULARY.pieces) - 3)), max_size=12))
def test_tokens_may_straddle_the_close_in_any_way(tokens):
    text = b"".join(VOCABULARY.pieces[t] for t in tokens)
    transcript = drive(canonical(), [*tokens, EOS])
    reasoning, _, content = text.partition(CLOSE.encode())
    assert transcript.reasoning == reasoning.decode("utf-8", "replace")
    assert transcript.content == content.decode("utf-8", "replace")


def test_one_token_may_hold_the_end_of_the_close_and_the_first_content_byte():
    session = canonical(words=[" x"])
    tokens = [*spell(VOCABULARY, "why\n</think"), token(b">\n\n "), ord("x"), EOS]
    transcript = drive(session, tokens)
    assert (transcript.reasoning, transcript.content) == ("why", " x")
    assert session.constraint_report().terminated


def test_another_spelling_of_the_close_stays_thinking_under_a_constraint():
    transcript = drive(canonical(words=["x"]), spell(VOCABULARY, "a</think>\n\nx"))
    assert transcript.reasoning == "a</think>\n\nx"
    assert transcript.content == ""


def test_a_close_cut_short_is_thinking_text():
    transcript = drive(canonical(), spell(VOCABULARY, "a\n</think>\n"))
    assert transcript.reasoning == "a\n</think>\n"


@pytest.mark.parametrize(
    ("text", "reasoning", "content"),
    [
        ("why\n</think>\n\nyes", "why", "yes"),
        ("why</think>\r\nyes", "why", "yes"),
        ("why</think>\n \t\n  yes ", "why", "yes "),
        ("say </think> aloud\n</think>\nyes", "say </think> aloud", "yes"),
        ("</think>\n", "", ""),
        ("why\n</think>", "why", ""),
        ("why\n\n</think>\n", "why\n", ""),
        ("why</thin", "why</thin", ""),
        ("why\n", "why\n", ""),
    ],
)
def test_free_thinking_closes_only_before_a_line_end_or_the_end(text, reasoning, content):
    transcript = drive(free(), [*spell(VOCABULARY, text), EOS])
    assert (transcript.reasoning, transcript.content) == (reasoning, content)


@given(st.text("a\n</think>", max_size=40), st.lists(st.integers(1, 5), max_size=20))
def test_free_thinking_does_not_depend_on_how_tokens_are_cut(text, sizes):
    pieces, at = [], 0
    stage, whole = FreeStage(MARKERS), FreeStage(MARKERS)
    data = text.encode()
    for size in [*sizes, len(data)]:
        pieces += stage.feed(data[at : at + size])
        at += size
    pieces += stage.finish()
    expected = whole.feed(data) + whole.finish()
    for channel in Channel:
        joined = [
            b"".join(s.data for s in many if s.channel is channel) for many in (pieces, expected)
        ]
        assert joined[0] == joined[1]


def test_stop_strings_belong_to_one_channel():
    stops = [StopString("x", Channel.CONTENT), StopString("why", Channel.REASONING)]
    text = "an x\n</think>\n\nwhy x"
    transcript = drive(free(stops=stops), [*spell(VOCABULARY, text), EOS])
    assert (transcript.reasoning, transcript.content) == ("an x", "why ")
    assert transcript.finish is FinishReason.STOP_STRING


def test_thinking_that_ends_frees_what_its_stop_strings_held_back():
    stops = [StopString("END", Channel.REASONING)]
    transcript = drive(free(stops=stops), [*spell(VOCABULARY, "EN\n</think>\n\nD"), EOS])
    assert (transcript.reasoning, transcript.content) == ("EN", "D")


@pytest.mark.parametrize("build", [free, canonical])
@pytest.mark.parametrize("budget", [1, 5, 9])
def test_a_spent_budget_closes_the_thinking_with_the_sentence(build, budget):
    tokens = [*spell(VOCABULARY, "t" * budget), ord("y"), EOS]
    session = build(budget=budget)
    transcript = drive(session, tokens, rounds=[4, 4, 4, 4])
    assert transcript.reasoning == "t" * budget + SENTENCE
    assert (transcript.content, transcript.finish) == ("y", FinishReason.STOP_TOKEN)
    report = session.thinking_report()
    assert (report.applied, report.requested_budget, report.effective_budget) == (
        True,
        budget,
        budget,
    )
    assert report.model_thinking_tokens == budget == transcript.output.reasoning_tokens
    assert report.injected_tokens == len(CLOSINGS[0]) == transcript.injected


def test_the_matcher_takes_the_forced_close_like_a_natural_one():
    session = canonical(words=["yes"], budget=3)
    transcript = drive(session, [*spell(VOCABULARY, "abcyes"), EOS])
    assert transcript.content == "yes"
    assert session.constraint_report().terminated


def test_no_round_is_offered_more_tokens_than_the_budget():
    session = free(budget=3, limit=1000)
    assert session.remaining_model_tokens == 3
    session.preview([97, 97])
    session.commit()
    assert session.remaining_model_tokens == 1
    preview = session.preview([97])
    assert preview.action is NextAction.APPLY_CONTROL
    session.commit()
    assert session.remaining_model_tokens == 0
    with pytest.raises(IntegrityError, match="pending"):
        session.preview([97])


@pytest.mark.parametrize("build", [free, canonical])
def test_a_natural_close_at_the_boundary_wins(build):
    text = "ab\n</think>\n\n"
    session = build(budget=len(text))
    transcript = drive(session, [*spell(VOCABULARY, text), ord("y"), EOS])
    assert (transcript.reasoning, transcript.content) == ("ab", "y")
    assert not session.thinking_report().applied


@pytest.mark.parametrize("cut", range(1, len(CLOSE) + 1))
@pytest.mark.parametrize("build", [free, canonical])
def test_a_budget_spent_inside_the_close_never_leaks_the_sentence_into_content(build, cut):
    session = build(budget=2 + cut)
    text = "ab" + CLOSE[:cut]
    transcript = drive(session, [*spell(VOCABULARY, text), ord("y"), EOS])
    assert transcript.content == "y"
    if CLOSE[:cut].startswith("\n</think>"):
        assert transcript.reasoning == "ab"
    else:
        assert transcript.reasoning == text + SENTENCE


@pytest.mark.parametrize("cut", range(1, len(CLOSE) + 1))
def test_the_matcher_agrees_wherever_the_budget_cuts_the_close(cut):
    session = canonical(budget=2 + cut, words=["y"])
    transcript = drive(session, [*spell(VOCABULARY, "ab" + CLOSE[:cut]), ord("y"), EOS])
    assert transcript.content == "y"
    assert session.constraint_report().terminated


@pytest.mark.parametrize("build", [free, canonical])
def test_a_stop_at_the_boundary_wins(build):
    session = build(budget=3)
    assert drive(session, [97, 97, EOS]).finish is FinishReason.STOP_TOKEN
    assert not session.thinking_report().applied


def test_a_stop_string_at_the_boundary_wins():
    session = free(budget=3, stops=[StopString("c", Channel.REASONING)])
    transcript = drive(session, spell(VOCABULARY, "abc"))
    assert (transcript.finish, transcript.reasoning) == (FinishReason.STOP_STRING, "ab")


def test_the_limit_at_the_boundary_wins():
    session = free(budget=3, limit=3)
    transcript = drive(session, spell(VOCABULARY, "abc"))
    assert (transcript.finish, transcript.injected) == (FinishReason.OUTPUT_LIMIT, 0)


def test_no_control_is_forced_where_it_would_not_fit():
    session = free(budget=3, limit=100)
    transcript = drive(session, spell(VOCABULARY, "t" * 100), rounds=[9] * 99)
    assert (transcript.finish, transcript.injected) == (FinishReason.OUTPUT_LIMIT, 0)


def test_cancelling_while_control_is_pending_publishes_only_what_was_committed():
    session = free(budget=2)
    session.preview([97, 97])
    session.commit()
    _, output = session.finish(FinishReason.CANCELLED)
    assert (output.reasoning, output.content) == ("aa", "")


def test_a_discarded_round_or_control_leaves_no_trace():
    session = canonical(words=["y"], budget=2)
    assert session.preview([97, 97]).action is NextAction.APPLY_CONTROL
    with pytest.raises(PendingPreview):
        session.preview([97])
    session.discard()
    assert session.remaining_model_tokens == 2
    session.preview([97, 97])
    session.commit()
    first = session.preview_control()
    session.discard()
    assert session.preview_control() == first
    session.commit()
    session.preview([ord("y"), EOS])
    session.commit()
    assert session.constraint_report().terminated


def test_control_without_a_spent_budget_is_refused():
    with pytest.raises(IntegrityError, match="no control"):
        free(budget=5).preview_control()


def test_a_character_is_finished_before_the_forced_close():
    first, rest = "上".encode()[:2], "上".encode()[2:]
    session = canonical(words=["y"], budget=2)
    tokens = [97, token(first), *rest, ord("y"), EOS]
    transcript = drive(session, tokens)
    assert transcript.reasoning == "a上" + SENTENCE
    assert session.thinking_report().model_thinking_tokens == 3


@pytest.mark.parametrize(
    ("requested", "limit", "cap"),
    [(None, 100, None), (100, 100, None), (200, 100, None), (3, 3 + len(CLOSINGS[0]) + 1, 3)],
)
def test_a_budget_counts_only_where_it_comes_before_the_limit(requested, limit, cap):
    assert plan_budget(requested, OutputLimit(limit), CLOSINGS).cap == cap


def test_a_budget_without_room_for_the_close_and_one_token_is_refused():
    with pytest.raises(ThinkingBudgetCapacity, match="budget_tokens"):
        plan_budget(3, OutputLimit(3 + len(CLOSINGS[0])), CLOSINGS)


def test_a_budget_below_one_is_refused():
    with pytest.raises(InvalidOption, match="budget_tokens: 0"):
        plan_budget(0, OutputLimit(100), CLOSINGS)


def test_an_answer_that_does_not_think_reports_no_thinking():
    assert build_session(VOCABULARY).thinking_report() is None


@pytest.mark.parametrize("make", [canonical, free])
@pytest.mark.parametrize("held", ["\n", "\n</think"])
@pytest.mark.parametrize("ending", ["limit", "token", "cancelled"])
def test_a_stop_string_in_text_that_the_close_held_back_is_why_the_answer_ends(make, held, ending):
    stop = StopString(held, Channel.REASONING)
    text = spell(VOCABULARY, "why" + held)
    limit = len(text) if ending == "limit" else 1000
    stream = [*text, EOS] if ending == "token" else text
    transcript = drive(make(stops=[stop], limit=limit), stream)
    assert transcript.reasoning == transcript.output.reasoning == "why"
    if ending == "cancelled":
        assert transcript.finish is FinishReason.CANCELLED
        assert transcript.output.matched_stop_string is None
    else:
        assert transcript.finish is FinishReason.STOP_STRING
        assert transcript.output.matched_stop_string == held


STOPS = ["\n", "<", "</think>", "\n\n", "é", "\ufffd", "now.\n", "Considering", "a"]
PARTS = ["\n", "</think>", "\n</think>\n\n", "</thi", "<", "a", "é", "\r"]


@given(
    st.lists(st.sampled_from(PARTS), max_size=8).map("".join),
    st.lists(
        st.builds(
            StopString, st.sampled_from(STOPS), st.sampled_from(list(Channel)), st.booleans()
        ),
        max_size=3,
    ),
    st.integers(1, 140),
    st.sampled_from([None, 1, 2, 5]),
    st.lists(st.integers(1, 6), max_size=20),
    st.sampled_from([canonical, free]),
)
def test_ends_agree_with_their_reason_however_the_rounds_fall(
    text, stops, limit, budget, rounds, make
):
    if budget is not None and budget < limit < budget + len(CLOSINGS[0]) + 1:
        limit = budget + len(CLOSINGS[0]) + 1
    plan = None if budget is None or limit <= budget else budget
    stream = [*spell(VOCABULARY, text), EOS]
    step = drive(make(stops=stops, limit=limit, budget=plan), stream)
    leap = drive(make(stops=stops, limit=limit, budget=plan), stream, rounds)
    assert step == leap
    matched = step.output.matched_stop_string
    assert (matched is not None) == (step.finish is FinishReason.STOP_STRING)
    assert matched is None or matched in [stop.text for stop in stops]
