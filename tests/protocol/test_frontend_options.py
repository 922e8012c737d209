"""Constrained answers: where they begin and end, and which options cannot stand beside them."""

import pytest

from ninfer.contract import (
    Channel,
    ConflictingOptions,
    ConstraintBranch,
    ExecutionOptions,
    FinishReason,
    InvalidOption,
    InvalidRegex,
    InvalidSchema,
    OptionPath,
    OutputConstraint,
    OutputOptions,
    RequestOptions,
    StopPolicy,
    StopString,
    TextPrompt,
    ThinkingBudgetCapacity,
    ThinkingOptions,
    TokenPrompt,
)
from support.masks import allowed_tokens
from support.sessions import drive
from support.templates import chat, small_frontend

FRONTEND = small_frontend()
VOCABULARY = FRONTEND.vocabulary
EOS = VOCABULARY.eos_ids[0]
YES_NO = OutputConstraint.choice(["yes", "no"])


def encode(text: str) -> list[int]:
    return list(FRONTEND.prepare(TextPrompt(text)).token_ids) if text else []


def open_(constraint=None, *, prompt=None, limit: int = 1000, **options):
    prepared = FRONTEND.prepare(prompt or chat("hi", enable_thinking=False))
    request = RequestOptions(constraint=constraint, **options)
    return FRONTEND.open_session(prepared, request, output_limit=limit)


def answer(text: str, constraint=None, **options):
    session = open_(constraint, **options)
    return drive(session, [*encode(text), EOS]), session.constraint_report()


STOPS = [
    ("stop.strings", {"stop": StopPolicy(strings=(StopString("}"),))}),
    ("stop.strings", {"stop": StopPolicy(strings=(StopString("x", Channel.REASONING),))}),
    ("stop.token_ids", {"stop": StopPolicy(token_ids=(7,))}),
    ("stop.include_model_defaults", {"stop": StopPolicy(include_model_defaults=False)}),
    ("stop.publish_stop_token", {"stop": StopPolicy(publish_stop_token=True)}),
    ("output.raw", {"output": OutputOptions(raw=True)}),
    ("output.preserve_special_tokens", {"output": OutputOptions(preserve_special_tokens=True)}),
]


@pytest.mark.parametrize(("name", "options"), STOPS)
def test_a_guaranteed_answer_refuses_every_other_ending_by_name(name, options):
    with pytest.raises(ConflictingOptions) as caught:
        open_(YES_NO, **options)
    assert caught.value.options == ("constraint", name)
    assert open_(**options).matcher is None


@pytest.mark.parametrize(("name", "options"), STOPS)
@pytest.mark.parametrize("prompt", [TextPrompt("hi"), TokenPrompt((1, 2))])
def test_raw_prompts_end_alike_but_already_publish_everything(name, options, prompt):
    if name.startswith("output."):
        assert open_(YES_NO, prompt=prompt, **options).matcher is not None
    else:
        with pytest.raises(ConflictingOptions):
            open_(YES_NO, prompt=prompt, **options)


@pytest.mark.parametrize(
    ("policy", "name"),
    [
        (StopPolicy(strings=(StopString("a"), StopString(""))), OptionPath("stop.strings", 1)),
        (StopPolicy(token_ids=(1, 99999)), OptionPath("stop.token_ids", 1)),
        (StopPolicy(token_ids=(-1,)), OptionPath("stop.token_ids", 0)),
    ],
)
def test_stops_that_cannot_happen_are_refused_with_their_place(policy, name):
    with pytest.raises(InvalidOption) as caught:
        open_(stop=policy)
    assert caught.value.location == name


def test_a_raw_prompt_is_constrained_from_the_first_new_byte_and_hides_the_end():
    session = open_(OutputConstraint.regex("[ab]{2}</think>"), prompt=TextPrompt("<think>\n"))
    transcript = drive(session, [*encode("ab</think>"), EOS])
    assert (transcript.content, transcript.reasoning) == ("ab</think>", "")
    assert transcript.finish is FinishReason.STOP_TOKEN
    assert session.thinking_report() is None


@pytest.mark.parametrize(
    "word", ["<think>", "</think>", "<tool_call>", "<|im_end|>", "<|im_start|>"]
)
def test_reserved_words_are_ordinary_text_in_an_answer(word):
    constraint = OutputConstraint.choice([word])
    session = open_(constraint)
    text = b""
    while EOS not in (allowed := allowed_tokens(session.matcher)):
        classes = {VOCABULARY.classes[token] for token in allowed}
        assert classes == {0}
        token = min(allowed)
        session.preview([token])
        session.commit()
        text += VOCABULARY.pieces[token]
    assert text == word.encode()
    session.preview([EOS])
    session.commit()
    assert session.finish(FinishReason.STOP_TOKEN)[1].content == word


def test_reserved_words_inside_json_stay_in_the_string():
    text = '{"a":"</think>\\n\\n<tool_call>"}'
    transcript, report = answer(text, OutputConstraint.json_object())
    assert (transcript.content, report.branch) == (text, ConstraintBranch.CONTENT)


def test_special_and_padding_ids_are_never_in_a_mask():
    session = open_(OutputConstraint.grammar("root ::= [^\\n]+"))
    allowed = allowed_tokens(session.matcher)
    assert {VOCABULARY.classes[token] for token in allowed} == {0}
    assert max(allowed) < VOCABULARY.token_domain - 3


def test_thinking_comes_first_and_is_free_until_its_close():
    session = open_(YES_NO, prompt=chat("hi"))
    first = allowed_tokens(session.matcher)
    texts = {t for t in range(VOCABULARY.token_domain) if VOCABULARY.classes[t] == 0}
    incomplete = {t for t in texts if not _is_text_start(VOCABULARY.pieces[t])}
    assert texts - incomplete <= first <= texts
    transcript = drive(session, [*encode('{"no"}\n</think>\n\nyes'), EOS])
    assert (transcript.reasoning, transcript.content) == ('{"no"}', "yes")


def _is_text_start(piece: bytes) -> bool:
    try:
        piece.decode()
    except UnicodeDecodeError as error:
        return error.end == len(piece) and error.reason == "unexpected end of data"
    return True


@pytest.mark.parametrize(
    ("lead", "following"),
    [
        (0xC2, range(0x80, 0xC0)),
        (0xE0, range(0xA0, 0xC0)),
        (0xE1, range(0x80, 0xC0)),
        (0xED, range(0x80, 0xA0)),
        (0xF0, range(0x90, 0xC0)),
        (0xF4, range(0x80, 0x90)),
    ],
)
def test_constrained_thinking_is_whole_characters_only(lead, following):
    byte_of = {VOCABULARY.pieces[t]: t for t in range(256)}
    session = open_(YES_NO, prompt=chat("hi"))
    session.preview([byte_of[bytes([lead])]])
    session.commit()
    allowed = {VOCABULARY.pieces[t] for t in allowed_tokens(session.matcher)}
    assert allowed == {bytes([byte]) for byte in following}


def test_thinking_turned_off_leaves_content_only():
    transcript, report = answer("yes", YES_NO)
    assert (transcript.content, transcript.reasoning, report.terminated) == ("yes", "", True)


def test_a_leading_space_of_the_content_survives_the_close():
    session = open_(OutputConstraint.regex(" x"), prompt=chat("hi"))
    transcript = drive(session, [*encode("why\n</think>\n\n x"), EOS])
    assert transcript.content == " x"


@pytest.mark.parametrize(
    ("text", "limit", "complete", "terminated", "finish"),
    [
        ("", 9, False, False, FinishReason.CANCELLED),
        ("12", 2, True, False, FinishReason.OUTPUT_LIMIT),
        ("12", 9, True, True, FinishReason.STOP_TOKEN),
    ],
)
def test_complete_terminated_and_finish_are_three_facts(text, limit, complete, terminated, finish):
    session = open_(OutputConstraint.regex("[0-9]+"), limit=limit)
    tokens = [*encode(text), EOS] if text else []
    assert drive(session, tokens).finish is finish
    report = session.constraint_report()
    assert (report.complete, report.terminated) == (complete, terminated)


def test_an_empty_text_in_the_language_may_end_at_once_but_nothing_asked_proves_nothing():
    session = open_(OutputConstraint.regex("a*"))
    assert EOS in allowed_tokens(session.matcher)
    assert drive(session, [EOS]).content == ""
    assert session.constraint_report().terminated
    untouched = open_(OutputConstraint.regex("a+"), limit=0)
    assert untouched.remaining_model_tokens == 0
    untouched.finish(FinishReason.NONE)
    report = untouched.constraint_report()
    assert (report.complete, report.terminated, report.branch) == (
        False,
        False,
        ConstraintBranch.UNDECIDED,
    )


def test_every_end_mark_is_closed_inside_a_value_and_open_behind_it():
    session = open_(OutputConstraint.json_schema('{"type":"string"}'))
    for token in encode('"ab"'):
        assert not allowed_tokens(session.matcher) & set(VOCABULARY.eos_ids)
        session.preview([token])
        session.commit()
    assert allowed_tokens(session.matcher) == set(VOCABULARY.eos_ids)


@pytest.mark.parametrize(
    ("constraint", "error"),
    [
        (OutputConstraint.regex("(a"), InvalidRegex),
        (OutputConstraint.json_schema("{"), InvalidSchema),
    ],
)
def test_what_a_source_gets_wrong_is_refused_before_anything_runs(constraint, error):
    with pytest.raises(error):
        open_(constraint, prompt=chat("hi"))


def test_equal_requests_share_one_compilation_and_thinking_makes_another():
    constraint = OutputConstraint.regex("shared[0-9]")
    outcomes = [
        open_(constraint, prompt=prompt).constraint_report().cache.value
        for prompt in (
            chat("hi"),
            chat("other"),
            chat("hi", enable_thinking=False),
            TextPrompt("x"),
        )
    ]
    assert outcomes == ["built", "hit", "built", "hit"]


def test_timings_are_reported_only_on_request():
    assert open_(YES_NO).constraint_report().prepare_seconds == 0
    report = open_(YES_NO, phase_timings=True).constraint_report()
    assert report.timings_collected
    assert report.prepare_seconds > 0


def budget(tokens: int) -> ExecutionOptions:
    return ExecutionOptions(thinking=ThinkingOptions(tokens))


def test_a_thinking_budget_needs_room_for_the_close():
    with pytest.raises(ThinkingBudgetCapacity):
        open_(YES_NO, prompt=chat("hi"), execution=budget(50), limit=60)
    assert open_(YES_NO, execution=budget(50), limit=60).remaining_model_tokens == 60


@pytest.mark.parametrize("tokens", [0, -5])
@pytest.mark.parametrize("thinks", [True, False])
def test_a_thinking_budget_out_of_range_is_refused_whether_or_not_the_answer_thinks(tokens, thinks):
    prompt = chat("hi") if thinks else TextPrompt("hi")
    with pytest.raises(InvalidOption, match="budget_tokens"):
        open_(prompt=prompt, execution=budget(tokens))


def test_a_budget_closes_constrained_thinking_with_the_models_own_tokens():
    session = open_(YES_NO, prompt=chat("hi"), execution=budget(3))
    transcript = drive(session, [*encode("hmm"), *encode("yes"), EOS])
    assert transcript.reasoning.startswith("hmm\n\n Considering the limited time by the user, I ")
    assert transcript.reasoning.endswith("based on the thinking directly now.")
    assert (transcript.content, transcript.finish) == ("yes", FinishReason.STOP_TOKEN)
    assert session.constraint_report().terminated


def test_raw_output_of_a_thinking_answer_is_one_text_with_its_marks():
    session = open_(prompt=chat("hi"), output=OutputOptions(raw=True))
    transcript = drive(session, [*encode("why</think>\n\nyes<|im_start|>"), EOS])
    assert transcript.content == "why</think>\n\nyes<|im_start|>"


def test_raw_output_has_no_thinking_that_a_budget_could_end():
    raw = OutputOptions(raw=True)
    with pytest.raises(ConflictingOptions, match="budget_tokens"):
        open_(prompt=chat("hi"), output=raw, execution=budget(3))
    assert open_(output=raw, execution=budget(3)).remaining_model_tokens == 1000
