"""The rules of thinking, marks and tools on the real Qwen vocabulary."""

import os
import random

import pytest

from ninfer.contract import (
    FinishReason,
    OutputConstraint,
    RequestOptions,
    TextPrompt,
    TokenClass,
    ToolChoice,
    ToolMode,
)
from ninfer.qwen_frontend.control import closing_texts
from support.masks import allowed_tokens
from support.qwen import qwen_frontend
from support.sessions import drive
from support.templates import chat
from support.tool_sets import random_tool_set
from support.tool_walks import check_random_set

SETS = 500 if os.environ.get("NINFER_SLOW") else 6
YES_NO = RequestOptions(constraint=OutputConstraint.choice([" yes", "no"]))


@pytest.fixture(scope="module")
def frontend():
    return qwen_frontend()


@pytest.fixture(scope="module")
def encode(frontend):
    return lambda text: list(frontend.prepare(TextPrompt(text)).token_ids) if text else []


def open_(frontend, options, **prompt):
    return frontend.open_session(frontend.prepare(chat("hi", **prompt)), options, output_limit=2000)


def test_markers_are_text_and_chat_marks_are_not(frontend):
    vocabulary = frontend.vocabulary
    marks = range(vocabulary.token_domain - 33, vocabulary.token_domain)
    kinds = {vocabulary.pieces[t].decode(): vocabulary.classes[t] for t in marks}
    for text in ("<think>", "</think>", "<tool_call>", "</tool_call>"):
        assert kinds[text] == TokenClass.TEXT
    assert kinds["<|im_start|>"] == kinds["<|vision_start|>"] == TokenClass.CONTROL
    assert kinds["<|im_end|>"] == kinds["<|endoftext|>"] == TokenClass.EOS


def test_the_forced_close_is_ordinary_text_that_spells_itself(frontend, encode):
    for text, tokens in zip(
        closing_texts(frontend.facts.reasoning), frontend._closings, strict=True
    ):
        assert list(tokens) == encode(text)
        assert b"".join(frontend.vocabulary.pieces[t] for t in tokens).decode() == text
    assert 248069 in frontend._closings[0]


def test_the_end_is_impossible_while_the_model_thinks(frontend, encode):
    session = open_(frontend, YES_NO)
    for token in encode("Let me see.\n</think>\n</think>\n"):
        allowed = allowed_tokens(session.matcher)
        assert not allowed & set(frontend.vocabulary.eos_ids)
        assert len(allowed) > 200_000
        session.preview([token])
        session.commit()


@pytest.mark.parametrize(
    "cut", ["\n</think>\n\n yes", "\n|</think>|\n\n| yes", "\n</|think|>\n|\n| |yes"]
)
def test_tokens_straddle_the_close_in_every_way(frontend, encode, cut):
    tokens = [t for part in cut.split("|") for t in encode(part)]
    session = open_(frontend, YES_NO)
    transcript = drive(session, [*encode("why"), *tokens, frontend.facts.eos_ids[1]])
    assert (transcript.reasoning, transcript.content) == ("why", " yes")
    assert session.constraint_report().terminated


def test_a_token_that_closes_and_begins_the_content_is_allowed_exactly_where_it_fits(
    frontend, encode
):
    pieces = frontend.vocabulary.pieces
    crossing = [t for t, p in enumerate(pieces) if p.startswith(b">\n\n") and len(p) > 3]
    session = open_(frontend, RequestOptions(constraint=OutputConstraint.regex("[\\s\\S]*")))
    session.preview([*encode("why\n"), *encode("</"), *encode("think")])
    session.commit()
    assert set(crossing) <= allowed_tokens(session.matcher)
    narrow = open_(frontend, YES_NO)
    narrow.preview([*encode("why\n"), *encode("</"), *encode("think")])
    narrow.commit()
    fitting = {t for t in crossing if b" yes".startswith(pieces[t][3:])}
    assert set(crossing) & allowed_tokens(narrow.matcher) == fitting


@pytest.mark.parametrize("word", ["<think>", "</think>", "<tool_call>", "<|im_end|>"])
def test_a_choice_of_reserved_words_is_published_unchanged(frontend, word):
    options = RequestOptions(constraint=OutputConstraint.choice([word]))
    session = open_(frontend, options, enable_thinking=False)
    source = random.Random(word)
    tokens = []
    while True:
        allowed = sorted(allowed_tokens(session.matcher))
        assert all(
            frontend.vocabulary.classes[t] in (TokenClass.TEXT, TokenClass.EOS) for t in allowed
        )
        tokens.append(source.choice(allowed))
        if session.preview(tokens[-1:]).finish is FinishReason.STOP_TOKEN:
            break
        session.commit()
    session.commit()
    assert session.finish(FinishReason.STOP_TOKEN)[1].content == word


def test_generated_calls_are_valid_and_reencode_to_the_same_bytes(frontend, encode):
    required = RequestOptions(tool_choice=ToolChoice(ToolMode.REQUIRED))

    def open_session(tools):
        return open_(frontend, required, tools=tools, enable_thinking=False)

    whole = sum(
        check_random_set(seed, open_session, frontend.vocabulary, encode) for seed in range(SETS)
    )
    assert whole >= SETS * 0.6


def test_the_seeded_sets_cover_what_they_should():
    tools = [tool for seed in range(60) for tool in random_tool_set(seed)]
    text = " ".join(tool.parameters_json for tool in tools)
    assert all(word in text for word in ("pattern", "maxLength", "enum", "array", "boolean", "</p"))
