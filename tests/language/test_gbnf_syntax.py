"""What a GBNF text may say, where it is refused, and what is cut away."""

from __future__ import annotations

import resource
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ninfer.contract import (
    InvalidGrammar,
    InvalidTokenReference,
    OutputConstraint,
    RequestError,
    TextPosition,
    UnsatisfiableConstraint,
)
from ninfer.text.admission import admit
from ninfer.text.emitter import emit
from ninfer.text.gbnf import gbnf_grammar, gbnf_language
from ninfer.text.grammar import Automaton, Repetition
from support.languages import Exploration, crossing_vocabulary
from support.vocabularies import byte_vocabulary

VOCABULARY = byte_vocabulary(b"ab", b"abc", eos=2, control=(b"<think>",), unused=1)
THINK, UNUSED, EOS = 258, 259, 260

REFUSED = {
    # text: line, column, a word of the fact
    'start ::= "x"': (1, 1, "no rule is called root"),
    "": (1, 1, "no rule is called root"),
    "# only a comment": (1, 1, "no rule is called root"),
    'root ::= foo "x"': (1, 10, "foo is not defined"),
    'root ::= "a"\nunused ::= nowhere': (2, 12, "nowhere is not defined"),
    'root ::= "a"\n\nroot ::= "b"': (3, 1, "defined twice"),
    "root ::=": (1, 9, "empty"),
    "root ::=\nx ::= 'a'": (2, 1, "empty"),
    'root ::= "a" |': (1, 15, "empty"),
    'root ::= | "a"': (1, 10, "empty"),
    'root ::= ("a" | )': (1, 17, "empty"),
    'root ::= ("a" | "b"': (1, 10, "not closed"),
    'root ::= "a" )': (1, 14, "no opening"),
    'root ::= "abc': (1, 10, "not closed"),
    'root ::= "abc\n"': (1, 10, "not closed"),
    "root ::= [abc": (1, 10, "not closed"),
    "root ::= [z-a]": (1, 11, "reversed"),
    'root ::= "a"{5,0}': (1, 13, "below the lower bound"),
    'root ::= "a"{,3}': (1, 14, "lower bound"),
    'root ::= "a"{}': (1, 14, "lower bound"),
    'root ::= "a"{2': (1, 15, "closing brace"),
    'root ::= "a"{99999999999}': (1, 14, "too large"),
    'root ::= "a"**': (1, 14, "follows a quantifier"),
    'root ::= "a"{1}?': (1, 16, "follows a quantifier"),
    'root ::= * "a"': (1, 10, "nothing to repeat"),
    'root ::= "a\\q"': (1, 12, "unknown"),
    "root ::= [\\d]": (1, 11, "unknown"),
    'root ::= "\\x4"': (1, 11, "2 hexadecimal digits"),
    'root ::= "\\ud83d"': (1, 11, "no Unicode character"),
    'root ::= "\\U00110000"': (1, 11, "no Unicode character"),
    "root ::= [\\ud800-\\udfff]": (1, 11, "no Unicode character"),
    'root ::= "a"\nroot2 = "b"': (2, 7, "unexpected character"),
    'root "a"': (1, 6, "::= is expected"),
    "root ::= ä": (1, 10, "unexpected character"),
    "root ::= 'a'": (1, 10, "unexpected character"),
    "root ::= <[256]>": (1, 10, "unexpected character"),
    '\ufeffroot ::= "a"': (1, 1, "rule name"),
    'root ::= "\ud800"': (1, 11, "lone surrogate"),
    "root ::= Token()": (1, 16, "token id"),
    "root ::= Token(-1)": (1, 16, "token id"),
    'root ::= Token("a")': (1, 16, "token id"),
    "root ::= Token(1 2)": (1, 18, "comma"),
    "root ::= Token": (1, 15, "list of token ids"),
    'Token ::= "a"': (1, 1, "may not be called Token"),
    'Regex ::= "a"': (1, 1, "may not be called Regex"),
    'root ::= TagDispatch(("a", b))': (1, 10, "TagDispatch is not supported"),
    "root ::= TokenTagDispatch((1, b))": (1, 10, "TokenTagDispatch is not supported"),
    'root ::= Regex("a")': (1, 10, "Regex is not supported"),
    'root ::= "b" Substring("a")': (1, 14, "Substring is not supported"),
    'root[max_tokens=3] ::= "a"': (1, 5, "attributes"),
    'root ::= a\na [temperature=0.7] ::= "b"': (2, 3, "attributes"),
    'root ::= "a" (= "b") "c"': (1, 22, "must end its rule"),
    'root ::= ("a" (= "b"))': (1, 15, "must end its rule"),
    'root ::= "a" (= "b" | "c")': (1, 21, "no alternatives"),
    'root ::= "a" (= )': (1, 17, "empty"),
    'root ::= "a" (= nowhere)': (1, 17, "nowhere is not defined"),
    'root ::= "a" (= "b"': (1, 14, "not closed"),
    'root ::= "x" y\ny ::= ' + '("a" y "b" | "z")? ' * 129: (2, 1, "more than 128 parts"),
    'root ::= "x" y\ny ::= "c" (("a" y "b")?){2,129}': (2, 1, "more than 128 parts"),
    'root ::= "x"\ny ::= z{129}\nz ::= ("a" y "b")*': (2, 1, "more than 128 parts"),
    'root ::= "x"\n'
    + "".join(f'r{n} ::= r{(n + 1) % 43}? r{n * 7 % 43}? r{n}* | "a"\n' for n in range(43)): (
        2,
        1,
        "more than 128 parts that may be absent lead back",
    ),
    'root ::= "x" (' + " | ".join(f'[^{chr(200 + n)}] root "b"' for n in range(25)) + ")": (
        1,
        1,
        "more than 1536 parts may begin",
    ),
    f"root ::= {'(' * 60_000}{')' * 60_000}": (1, 266, "256 deep"),
    "root ::= r0\n" + "".join(f"r{n} ::= r{n + 1}\n" for n in range(20_000)): (
        16_385,
        1,
        "more than 16384 rules",
    ),
}

WITHOUT_A_WORD = [
    "root ::= root",
    'root ::= a\na ::= "(" a ")"',
    "root ::= []",
    'root ::= "a" []',
    "root ::= x y\nx ::= y\ny ::= x",
    'root ::= "a" root',
    "root ::= []{1,3}",
]


@pytest.mark.parametrize("text", REFUSED, ids=lambda t: ascii(t)[:50])
def test_what_is_wrong_is_refused_with_line_and_column(text):
    line, column, fact = REFUSED[text]
    with pytest.raises(InvalidGrammar) as refusal:
        gbnf_language(text, VOCABULARY)
    assert refusal.value.location == TextPosition(line, column)
    assert fact in refusal.value.fact


@pytest.mark.parametrize(
    ("token", "fact"),
    [(THINK, "control"), (UNUSED, "unused"), (EOS, "eos"), (EOS + 1, "eos"), (262, "outside")],
)
@pytest.mark.parametrize("terminal", ["Token(97, {})", "ExcludeToken({})"])
def test_a_token_that_no_text_may_use_is_refused_at_its_place(terminal, token, fact):
    text = "root ::= x\nx ::= " + terminal.format(token)
    with pytest.raises(InvalidTokenReference) as refusal:
        gbnf_grammar(text, VOCABULARY)
    assert refusal.value.location == TextPosition(2, 7 + terminal.index("{"))
    assert fact in refusal.value.fact


def test_optional_parts_that_are_regular_are_one_automaton():
    text = "root ::= " + '("a" [b-y])? ' * 129
    assert isinstance(gbnf_language(text, VOCABULARY).rules["root"], Automaton)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ('root ::= (r | "")*\nr ::= "a" r', 'root ::= (r | ""){3,}\nr ::= "a" r'),
        ('root ::= r{0,9}\nr ::= ("a" r)?', 'root ::= r{5,9}\nr ::= ("a" r)?'),
        ('root ::= r{0,9} "b"\nr ::= ("a" r)*', 'root ::= r{9} "b"\nr ::= ("a" r)*'),
    ],
)
def test_copies_of_what_may_be_absent_need_not_be_there(text, same):
    assert gbnf_grammar(text, VOCABULARY) == gbnf_grammar(same, VOCABULARY)


@pytest.mark.parametrize("copies", ["*", "{3,9}", "{0,9}", "{2,}"])
def test_a_repeated_automaton_is_not_followed_when_it_reads_nothing(copies):
    grammar = gbnf_language(f'root ::= "x" line{copies} root?\nline ::= ("a" [^\\n]*)?', VOCABULARY)
    repeated = [item for item in grammar.rules["root"].items if isinstance(item, Repetition)]
    machines = [r.item for r in repeated if isinstance(r.item, Automaton)]
    assert [m.dfa.accepting[0] for m in machines] == [0]
    assert {r.low for r in repeated} == {0}


def test_token_terminals_match_by_identity():
    grammar = gbnf_grammar('root ::= Token(256) ExcludeToken(97, 257) "c"', VOCABULARY)
    exploration = Exploration(grammar, VOCABULARY)
    assert exploration.allowed([]) == {256}
    assert exploration.allowed([256]) == set(range(258)) - {97, 257}
    assert exploration.allowed([256, 256]) == {ord("c")}
    assert exploration.allowed([256, 256, ord("c")]) == {EOS, EOS + 1}


@pytest.mark.parametrize("text", WITHOUT_A_WORD)
def test_a_grammar_without_a_finite_word_is_unsatisfiable(text):
    with pytest.raises(UnsatisfiableConstraint):
        admit(OutputConstraint.grammar(text), VOCABULARY)


def test_a_branch_without_a_finite_word_is_never_begun():
    vocabulary = crossing_vocabulary("abc")
    text = 'root ::= "a" x | "b" y "c"\nx ::= "a" x\ny ::= "b" | "c" [] | x'
    exploration = Exploration(admit(OutputConstraint.grammar(text), vocabulary), vocabulary)
    assert exploration.differences({"bbc"}, 3) == []


def test_special_ids_stay_out_of_masks_while_their_spelling_is_text():
    exploration = Exploration(
        admit(OutputConstraint.grammar("root ::= [^\\n]+"), VOCABULARY), VOCABULARY
    )
    start = exploration.allowed([])
    assert start.isdisjoint({THINK, UNUSED, EOS, EOS + 1})
    assert set(b"<think>") <= start
    after = exploration.allowed(list(b"<think>"))
    assert {EOS, EOS + 1} <= after
    assert after.isdisjoint({THINK, UNUSED})


def test_annotations_never_change_the_language():
    plain = 'root ::= x "b"\nx ::= "a" | "ab"'
    for hint in ('(= "b")', '(= "c" [x] root)', "(= [^b])"):
        assert gbnf_grammar(f"{plain} {hint}", VOCABULARY) == gbnf_grammar(plain, VOCABULARY)


def test_layout_is_free_and_comments_end_with_their_line():
    spread = '# first ( " [\r\nroot\n  ::=\t"#" # note ( " [\n | [#]\n x # end\nx::="a"#last'
    assert gbnf_grammar(spread, VOCABULARY) == gbnf_grammar(
        'root ::= "#" | [#] x\nx ::= "a"', VOCABULARY
    )


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_every_line_end_ends_a_comment(line_end):
    lines = ('root ::= "a" # an alternative follows', ' | x # x ::= "c"', "x # ::= [", ' ::= "b"')
    assert gbnf_grammar(line_end.join(lines), VOCABULARY) == gbnf_grammar(
        'root ::= "a" | x\nx ::= "b"', VOCABULARY
    )


@pytest.mark.parametrize("character", "$()*+./{|}-]^[\\\"'?")
def test_marks_may_be_escaped_inside_a_class(character):
    exploration = Exploration(gbnf_grammar(f"root ::= [\\{character}]", VOCABULARY), VOCABULARY)
    assert exploration.allowed([]) >= {ord(character)}
    assert exploration.accepts(character)
    assert not exploration.accepts("\\" if character != "\\" else "a")


def test_a_slash_may_be_escaped_inside_a_literal():
    written, plain = 'root ::= "a\\/b"', 'root ::= "a/b"'
    assert gbnf_grammar(written, VOCABULARY) == gbnf_grammar(plain, VOCABULARY)


HEAVY = {
    "one huge repetition": 'root ::= "a"{1,10000000}',
    "repetitions of repetitions": 'root ::= ("a"{1,1000}){1,1000}',
    "five levels": f"root ::= {'(' * 5}[a-z]{'{1,900})' * 5}{{1,900}}",
    "a wide repetition": "root ::= .{0,8192}",
    "a long chain of rules": "root ::= r0\n"
    + "".join(f'r{n} ::= "a" r{n + 1}\n' for n in range(3_500))
    + 'r3500 ::= "b"',
    "many alternatives": "root ::= " + " | ".join(f'"word{n}"' for n in range(5_000)),
    "many rules of one alternation": "root ::= "
    + " | ".join(f"r{n}" for n in range(700))
    + "".join(f'\nr{n} ::= "a" r{(n * 7) % 700} | "b"' for n in range(700)),
    "deep groups": f'root ::= {"(" * 255}"a"{")?" * 255}',
    "optional groups": "root ::= " + '("a" [b-y] | "z")? ' * 128,
    "stars of stars": f"root ::= {'(' * 120}[a-z]{')*' * 120}",
    "every class": "root ::= " + " | ".join(f"[^{chr(0x4E00 + n)}]" for n in range(6_000)),
    "one long literal": f'root ::= "{"a" * 64_000}"',
}


@pytest.mark.parametrize("name", HEAVY)
def test_no_text_takes_long_to_check(name):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    emitted = emit(admit(OutputConstraint.grammar(HEAVY[name]), VOCABULARY))
    # Two seconds are promised; a busy machine counts more of them for the same work.
    assert time.process_time() - start < 6
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 512 << 10
    assert len(emitted) < 4 << 20


pieces = st.sampled_from(
    ["root", "x", " ::= ", '"a"', "[b-c]", "(", ")", "|", "*", "?", "{2}", "{1,3}", "\n", "[", "]",
     "Token(97)", "#", '"', "(=", "\\", ".", "é", " ", "x ::= ", "root ::= "]
)  # fmt: skip


@given(st.lists(pieces, max_size=40).map("".join))
def test_any_text_is_read_or_refused_with_a_place(text):
    outcome = outcome_of(text)
    assert isinstance(outcome, str | TextPosition)
    assert not isinstance(outcome, str) or outcome.startswith("root ::= ")


def outcome_of(text):
    try:
        return emit(admit(OutputConstraint.grammar(text), VOCABULARY))
    except UnsatisfiableConstraint:
        return "root ::= nothing"
    except RequestError as refusal:
        return refusal.location
