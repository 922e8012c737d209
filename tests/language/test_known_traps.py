"""Languages that other engines got wrong, each for its whole family."""

from __future__ import annotations

import resource
from itertools import pairwise

import pytest

from ninfer.contract import OutputConstraint, RequestError
from ninfer.text import ConstraintCompiler
from ninfer.text.admission import admit
from support.languages import Exploration
from support.vocabularies import byte_vocabulary

VOCABULARY = byte_vocabulary(
    b"/*", b"*/", b" */", b"**", b"*/x", b" *", b"  ", b"\t", b"\n", b"\n\n", b'{"', b'":', b'","',
    b'"}', b"},", b", ", b": ", "こ".encode()[:2], "ん".encode()[1:], "😀".encode()[2:], eos=3,
)  # fmt: skip
EOS = set(VOCABULARY.eos_ids)
PIECES = VOCABULARY.pieces


def explored(constraint: OutputConstraint) -> Exploration:
    return Exploration(admit(constraint, VOCABULARY), VOCABULARY)


def offered(exploration: Exploration, text: str) -> set[bytes]:
    allowed = exploration.allowed(list(text.encode()))
    return {PIECES[token] for token in allowed - EOS}


def ends(exploration: Exploration, text: str) -> set[int]:
    return exploration.allowed(list(text.encode())) & EOS


COMMENT = r"/\*(\*+[^*/]|[^*])*\*+/"


@pytest.mark.parametrize(
    "text", ["/**/", "/*  */", "/* a * b */", "/***/", "/* ** /* **/", "/*\n*/"]
)
def test_legal_comments_can_be_written_in_every_split(text):
    exploration = explored(OutputConstraint.regex(COMMENT))
    assert exploration.accepts(text)
    for cut in range(2, len(text) - 2):
        assert any(text[cut:].encode().startswith(p) for p in offered(exploration, text[:cut]) if p)
    assert ends(exploration, text) == EOS
    assert offered(exploration, text) == set()


@pytest.mark.parametrize("text", ["/*", "/*/", "/* *", "/* */x", "/* */ */", "*/", "/ * */"])
def test_what_is_no_comment_is_not(text):
    assert not explored(OutputConstraint.regex(COMMENT)).accepts(text)


def test_a_token_that_closes_a_comment_stays_legal_after_blanks():
    exploration = explored(OutputConstraint.regex(COMMENT))
    for text in ("/* ", "/*  ", "/* *", "/* a **"):
        assert {b"*/", b"**"} <= offered(exploration, text)
        assert b"*/x" not in offered(exploration, text)


def test_empty_alternatives_count_every_octet():
    exploration = explored(OutputConstraint.regex(r"(25[0-5]|(2[0-4]|1\d|[1-9]|)\d)"))
    texts = [str(number) for number in range(1_000)] + ["00", "01", "", "1234"]
    assert [text for text in texts if exploration.accepts(text)] == list(map(str, range(256)))


def test_anchored_patterns_in_a_row_do_not_disturb_each_other():
    compiler = ConstraintCompiler(VOCABULARY)
    for expression in ("^(.*)$", "^(|.*)$", "^$", "(|a)"):
        matcher = compiler.matcher(compiler.compile(OutputConstraint.regex(expression)))
        assert matcher.can_end


BROKEN = [
    OutputConstraint.regex(r"a\!b"),
    OutputConstraint.regex("(a"),
    OutputConstraint.regex("(?=a)"),
    OutputConstraint.grammar("root ::= nowhere"),
    OutputConstraint.grammar("root ::= " + "(" * 60_000),
    OutputConstraint.grammar("root ::= root"),
    OutputConstraint.choice([]),
    OutputConstraint.choice(["\ud800"]),
]


def test_texts_made_to_exhaust_the_stack_cost_no_memory():
    compiler = ConstraintCompiler(VOCABULARY)
    deep = [
        OutputConstraint.grammar(f"root ::= {'(' * 60_000}{')' * 60_000}"),
        OutputConstraint.grammar(
            "root ::= r0\n" + "".join(f"r{n} ::= r{n + 1}\n" for n in range(20_000))
        ),
        OutputConstraint.regex("(" * 30_000),
        OutputConstraint.regex("[" * 30_000),
        OutputConstraint.regex("(?:" * 30_000 + "a" + ")*" * 30_000),
        OutputConstraint.json_schema('{"items":' * 30_000 + "{}" + "}" * 30_000),
    ]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for constraint in deep:
        with pytest.raises(RequestError) as refusal:
            compiler.compile(constraint)
        assert refusal.value.location is not None
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 << 10
    good = compiler.compile(OutputConstraint.choice(["yes", "no"]))
    assert compiler.matcher(good).feed(b"yes") == 3


def test_an_unknown_escape_in_a_pattern_is_refused_with_pointer_and_offset():
    schema = '{"type":"object","properties":{"g":{"type":"string","pattern":"^hi\\\\!$"}}}'
    with pytest.raises(RequestError, match=r"/properties/g/pattern.*offset 3.*\\!"):
        admit(OutputConstraint.json_schema(schema), VOCABULARY)


def test_a_refused_constraint_is_refused_again_and_harms_no_other():
    compiler = ConstraintCompiler(VOCABULARY)
    for broken in BROKEN:
        for _ in range(2):
            with pytest.raises(RequestError):
                compiler.compile(broken)
        good = compiler.compile(OutputConstraint.choice(["yes", "no"]))
        assert compiler.matcher(good).feed(b"yes") == 3


@pytest.mark.parametrize(
    ("constraint", "text", "whole"),
    [
        (OutputConstraint.grammar("root ::= [ぁ-ん]+"), "こん", ["こ", "こん"]),
        (OutputConstraint.regex("[😀-🙏]{2}"), "😁😂", ["😁😂"]),
        (OutputConstraint.regex("[^a]+"), "\n😀", ["\n", "\n😀"]),
        (OutputConstraint.choice(["é", "éé", "ee"]), "éé", ["é", "éé"]),
        (OutputConstraint.grammar('root ::= "\\"" [^"]* "\\""'), '"上"', ['"上"']),
    ],
    ids=["kana", "emoji", "negated", "choice", "string"],
)
def test_an_answer_never_ends_inside_a_character(constraint, text, whole):
    exploration = explored(constraint)
    encoded = text.encode()
    complete = {word.encode() for word in whole}
    for length in range(len(encoded) + 1):
        allowed = exploration.allowed(list(encoded[:length]))
        assert (allowed & EOS == EOS) == (encoded[:length] in complete)
        assert not allowed & EOS or allowed >= EOS
        if length < len(encoded):
            assert encoded[length] in allowed


def test_other_scripts_are_outside_a_class_of_kana():
    exploration = explored(OutputConstraint.grammar("root ::= [ぁ-ん]+"))
    first = offered(exploration, "")
    assert {piece[:1] for piece in first} == {b"\xe3"}
    assert not exploration.accepts("a")
    assert not exploration.accepts("ア")


def test_no_white_space_is_legal_between_the_tokens_of_json():
    exploration = explored(OutputConstraint.json_object())
    text = '{"a":[1,2.5,{"b":null}],"c":"d"}'
    inside, quotes = set(), 0
    for position, (character, _) in enumerate(pairwise(text + " ")):
        quotes += character == '"'
        if quotes % 2:
            inside.add(position + 1)
    for length in range(len(text) + 1):
        blank = {p for p in offered(exploration, text[:length]) if p[:1].isspace()}
        assert (blank != set()) == (length in inside)
    assert ends(exploration, text) == EOS


def test_no_end_is_open_before_the_value_is_complete():
    exploration = explored(OutputConstraint.json_object())
    text = '{"a":{"b":"c"},"d":[true]}'
    for length in range(len(text)):
        assert ends(exploration, text[:length]) == set()
    assert ends(exploration, text) == EOS
