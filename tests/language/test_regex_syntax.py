"""What the expression syntax refuses, where, and what it means otherwise."""

from __future__ import annotations

import time

import pytest

from ninfer.contract import InvalidRegex, TextOffset
from ninfer.text.automata.subset import compile_expression
from ninfer.text.emitter import emit
from ninfer.text.regex import pattern_automaton, regex_grammar, whole_expression
from support.languages import Exploration
from support.vocabularies import byte_vocabulary

REFUSED = {
    # expression: offset, a word of the fact
    "a^b": (1, "start of a branch"),
    "^^a": (1, "start of a branch"),
    "(^a$)|b": (1, "start of a branch"),
    "a$b": (1, "end of a branch"),
    "(a$)": (2, "end of a branch"),
    "a|b$c": (3, "end of a branch"),
    "$a": (0, "end of a branch"),
    "a$*": (1, "end of a branch"),
    "^*": (1, "nothing to repeat"),
    "*a": (0, "nothing to repeat"),
    "a|+": (2, "nothing to repeat"),
    "(?:{2})": (3, "nothing to repeat"),
    r"\bcat": (0, r"word boundary \b"),
    r"a\B": (1, r"word boundary \B"),
    "(?=a)ab": (0, "lookaround (?="),
    "a(?!b)": (1, "lookaround (?!"),
    "(?<=a)b": (0, "lookaround (?<="),
    "(?<!a)b": (0, "lookaround (?<!"),
    r"(a)\1": (3, "backreference"),
    r"(?<n>a)\k<n>": (7, "backreference"),
    r"\p{L}": (0, "property"),
    r"[\P{L}]": (1, "property"),
    "(?i)a": (0, "inline flags"),
    "a(?i:b)": (1, "inline flags"),
    "(?P<x>a)": (0, "inline flags"),
    "(?<1>a)": (0, "group name"),
    "(?<n>a)(?<n>b)": (7, "named n"),
    r"\uD83D\uDE00": (0, "surrogate"),
    r"[\uD800-\uDFFF]": (1, "surrogate"),
    r"\u{1F600}": (0, r"\u{...}"),
    r"\cA": (0, "control escape"),
    r"\q": (0, r"\q is unknown"),
    r"a\!b": (1, r"\! is unknown"),
    r"[\e]": (1, r"\e is unknown"),
    r"\x4": (0, "2 hexadecimal digits"),
    r"\u00g0": (0, "4 hexadecimal digits"),
    r"\01": (0, "octal"),
    r"\8": (0, "backreference"),
    "\\": (0, "backslash"),
    "a{,3}": (1, "brace"),
    "a{": (1, "brace"),
    "a{1": (1, "brace"),
    "a{x}": (1, "brace"),
    "{1}": (0, "nothing to repeat"),
    "a{5,2}": (1, "below the lower bound"),
    "a++": (2, "follows a quantifier"),
    "a**": (2, "follows a quantifier"),
    "a{2}{3}": (4, "follows a quantifier"),
    "a{1,99999999999}": (4, "too large"),
    "[]": (0, "empty"),
    "[^]": (0, "empty"),
    "[]a]": (0, "empty"),
    "[z-a]": (1, "reversed"),
    "[a": (0, "not closed"),
    "(a": (0, "not closed"),
    "a)": (1, "no opening"),
    "((a)": (0, "not closed"),
    "a\ud83d": (1, "lone surrogate"),
    "(a{1000}){1000}": (0, "65536 automaton states"),
    "((((((((((((a{0,9}){0,9}){0,9}){0,9}){0,9}){0,9}){0,9}){0,9}){0,9}){0,9}){0,9}){0,9})": (
        0,
        "65536 automaton states",
    ),
    "(" * 30_000: (100, "100 deep"),
}

MEANING = {
    # expression: words, other texts
    "": ([""], ["a", " "]),
    "^$": ([""], ["a"]),
    "|a": (["", "a"], ["aa"]),
    "^a|b$": (["a", "b"], ["ab", ""]),
    ".": (["a", "\u2027", "😀", "\0"], ["\n", "\r", "\u2028", "\u2029", ""]),
    r"\d": (["0", "9"], ["٣", "a", "²"]),
    r"\w": (["a", "Z", "_", "5"], ["é", "-", " "]),
    r"\s": ([" ", "\t", "\v", "\u00a0", "\ufeff", "\u2028", "\u3000"], ["\u200b", "\u0085", "a"]),
    r"\S\D\W": (["aa-", "é😀é"], [" a-", "a1-", "aaa"]),
    r"[^\d\s]": (["a", "\0"], ["1", " "]),
    r"[\w-.]": (["-", ".", "a"], ["x-", "/"]),
    r"[a\-z]": (["a", "-", "z"], ["b"]),
    r"[-a]|[a-]": (["-", "a"], ["b"]),
    r"[\]\\^]": (["]", "\\", "^"], ["["]),
    r"[\b]": (["\b"], ["b"]),
    "a]}": (["a]}"], ["a"]),
    r"\t\n\r\v\f\0": (["\t\n\r\v\f\0"], ["tnrvf0"]),
    r"\x41b\u00e9c": (["Abéc"], ["\u041b"]),
    r"\x00": (["\0"], [""]),
    "a\0b": (["a\0b"], ["ab"]),
    r"\/\-\.\*": (["/-.*"], ["/-a"]),
    "a{2}b{1,}c{0,1}": (["aab", "aabbc"], ["ab", "aabcc"]),
    "a{0}": ([""], ["a"]),
    "(?:ab)+?": (["ab", "abab"], ["", "aba"]),
    "a*?b??c+?d{1,2}?": (["cd", "aabccdd"], ["d", "abbcd"]),
    "(?<year>[0-9]{4})-x": (["2024-x"], ["24-x"]),
    "[😀-🙏]": (["😁"], ["a", "\U0001f650"]),
    "[^a]": (["😀", "\n"], ["a", ""]),
    r"(2[0-4]|1\d|[1-9]|)\d": (["7", "24", "199"], ["", "2459"]),
}

SEARCHED = {
    # pattern: texts with a match, texts without
    "b": (["b", "abc", "\nb\n"], ["", "ac"]),
    "^b": (["b", "bc"], ["ab", "\nb"]),
    "b$": (["b", "ab"], ["bc", "b\n"]),
    "^b$": (["b"], ["bb", ""]),
    "^a|b$": (["ax", "xb"], ["xa", "bx"]),
    "": (["", "x"], []),
    "a.c": (["xabcx"], ["a\nc"]),
    "(ab){2}": (["xababx"], ["abxab"]),
}


@pytest.mark.parametrize("expression", REFUSED, ids=lambda e: ascii(e)[:40])
def test_what_is_not_supported_is_refused_with_its_offset(expression):
    offset, fact = REFUSED[expression]
    with pytest.raises(InvalidRegex) as refusal:
        regex_grammar(expression)
    assert refusal.value.location == TextOffset(offset)
    assert fact in refusal.value.fact


@pytest.mark.parametrize("expression", MEANING)
def test_an_expression_means_whole_texts(expression):
    dfa = compile_expression(whole_expression(expression))
    matching, others = MEANING[expression]
    assert [text for text in matching if not dfa.accepts(text)] == []
    assert [text for text in others if dfa.accepts(text)] == []


@pytest.mark.parametrize("pattern", SEARCHED)
def test_a_pattern_is_searched_for(pattern):
    dfa = pattern_automaton(pattern)
    matching, others = SEARCHED[pattern]
    assert [text for text in matching if not dfa.accepts(text)] == []
    assert [text for text in others if dfa.accepts(text)] == []


def test_no_class_admits_a_surrogate():
    for expression in ("[^a]", ".", r"\D", r"\W", r"\S", "[\\u0000-\\uffff]"):
        dfa = compile_expression(whole_expression(expression))
        assert dfa.step(0, 0xD7FF) is not None
        assert [c for c in (0xD800, 0xDBFF, 0xDC00, 0xDFFF) if dfa.step(0, c) is not None] == []


LARGE = {
    # expression: words, other texts
    "[ab]*a[ab]{13}": (["a" * 14, "bba" + "ab" * 6 + "b"], ["b" * 20, "a" * 13, "a" * 13 + "c"]),
    "[ab]*a[ab]{20}": (["b" * 9 + "a" + "ab" * 10], ["b" * 40, "a" * 20]),
    "[a-z]{1,8192}": (["q", "q" * 8192], ["", "q" * 8193, "Q"]),
    "[a-z]{2000,4000}": (["q" * 2000, "q" * 4000], ["q" * 1999, "q" * 4001]),
    "[a-z]{1,5000}-[0-9]{1,5000}": (["a-1", "a" * 5000 + "-" + "1" * 5000], ["a" * 5001 + "-1"]),
    "(ab|cd){1,6000}": (["abcd" * 3000], ["", "abc", "abcd" * 3000 + "ab"]),
    ".{0,8192}": (["", "é" * 8192], ["é" * 8193, "\n"]),
}


@pytest.mark.parametrize("expression", LARGE)
def test_large_expressions_keep_their_meaning(expression):
    exploration = Exploration(regex_grammar(expression), byte_vocabulary())
    matching, others = LARGE[expression]
    assert [len(text) for text in matching if not exploration.accepts(text)] == []
    assert [len(text) for text in others if exploration.accepts(text)] == []


@pytest.mark.parametrize(
    "expression",
    [
        "(a{1,200}){1,200}",
        "(.{0,100}){0,600}",
        "(a{0,100}b{0,100}){0,100}",
        "(.{0,200}x){0,200}",
        "(((((.?){0,9}){0,9}){0,9}){0,9}){0,9}",
        "(.*a.{200}){100}",
        "|".join("a" * n + "b?" * (n % 7) for n in range(200)),
        "|".join(f"[^{chr(0x4E00 + n)}]" for n in range(6_000)),
        "(?:" * 99 + "a" + "|b)*" * 99,
        "[" + "".join(map(chr, range(0x4E00, 0x7000, 2))) + "]{0,50}",
    ],
    ids=lambda e: e[:24],
)
def test_no_expression_takes_long_to_check(expression):
    start = time.process_time()
    try:
        emit(regex_grammar(expression))
    except InvalidRegex as refusal:
        assert "more than" in refusal.fact  # noqa: PT017
    # Two seconds are promised; a busy machine counts more of them for the same work.
    assert time.process_time() - start < 6
