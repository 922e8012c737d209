"""At every reachable place of small languages, the mask is exactly what can still be completed."""

from __future__ import annotations

import re
from itertools import product

import pytest

from ninfer.text.automata.nfa import Nfa
from ninfer.text.choice import choice_grammar
from ninfer.text.gbnf import gbnf_grammar, gbnf_language
from ninfer.text.nondeterministic import nondeterministic_grammar
from ninfer.text.productive import without_dead_branches
from ninfer.text.regex import regex_grammar, whole_expression
from support.languages import Exploration, crossing_vocabulary, spellable, words

GRAMMARS = {
    # name: GBNF, alphabet, characters explored, characters that complete everything explored
    "literal": ('root ::= "abc"', "abc", 3, 3),
    "empty": ('root ::= ""', "ab", 1, 1),
    "empty group": ('root ::= () "a"', "ab", 1, 2),
    "alternatives": ('root ::= "a" | "ab" | "b" "c"', "abc", 3, 3),
    "class": ("root ::= [a-b] [^a]", "abc", 2, 3),
    "anything": ("root ::= .", "aé\n", 1, 2),
    "star": ("root ::= [a]* [b]", "ab", 3, 7),
    "star of a group": ('root ::= ("ab" | "c")*', "abc", 3, 8),
    "plus": ('root ::= ("a" [bc])+', "abc", 4, 8),
    "optional": ('root ::= "a"? "b"? "c"?', "abc", 3, 3),
    "exactly": ('root ::= "a"{3}', "ab", 3, 3),
    "at least": ('root ::= "a"{2,} "b"', "ab", 4, 8),
    "between": ("root ::= [ab]{1,4}", "ab", 4, 4),
    "repeat of a group": ('root ::= ("a" | "bc"){2,3}', "abc", 6, 6),
    "zero times": ('root ::= "a"{0} "b"', "ab", 1, 1),
    "nested repeats": ('root ::= (("a"{1,2} "b"){0,2} "c"){1,2}', "abc", 5, 14),
    "nested stars": ('root ::= ("a"* "b"*)* "c"', "abc", 3, 7),
    "right recursion": ('root ::= "a" root | "b"', "ab", 3, 7),
    "left recursion": ('root ::= root "," "a" | "a"', "a,", 4, 9),
    "hidden left recursion": ('root ::= o root "a" | "b"\no ::= "c"?', "abc", 1, 9),
    "middle recursion": ('root ::= "a" root "b" | "c"', "abc", 2, 11),
    "recursive entry": ('root ::= "(" root? ")"', "()", 2, 10),
    "mutual recursion": ('root ::= "a" x | "b"\nx ::= "b" root | "c"', "abc", 3, 8),
    "lists": ('root ::= v\nv ::= "[" (v ("," v)*)? "]" | "1"', "[],1", 1, 8),
    "sums": ('root ::= e\ne ::= "1" | e "+" e', "1+", 4, 9),
    "nullable loop": ('root ::= x "a"\nx ::= x | "" | "b"', "ab", 2, 4),
    "shared rules": ('root ::= x "," x\nx ::= "a" | "ab"', "ab,", 5, 5),
    "two contexts": ('root ::= "a" x "c" | "b" x\nx ::= "c" | "cc"', "abc", 4, 5),
    "dead branch": ('root ::= "a" "b" | "a" []', "ab", 2, 2),
    "dead rule": ('root ::= "a" x | "b"\nx ::= "a" x', "ab", 1, 2),
    "comment and lines": ('root ::= # one ( " [\n  "a"\n  | "#" # two', "a#", 1, 1),
    "two bytes": ('root ::= "é" [a-é]', "aé", 2, 2),
    "four bytes": ("root ::= [😀-😃]{1,2}", "😀😁a", 2, 2),
    "three bytes": ("root ::= [ぁ-ん]+ [^ぁ-ん]", "こa", 1, 5),
    "range across lengths": ("root ::= [z-ÿ]{2}", "zéa", 2, 2),
    "lookahead is only a hint": ('root ::= x "b"\nx ::= "a" | "ab" (= "b")', "ab", 3, 3),
    "wrong lookahead": ('root ::= x "b"\nx ::= "a" (= "c")', "abc", 2, 2),
    "quotes": ('root ::= "\\"" [^"]* "\\""', 'a"\\', 3, 7),
    "escapes": ('root ::= "\\\\" ["\\\\n] | [^"\\\\]', 'n"\\', 2, 2),
    "nul": ('root ::= "a\\x00b" | [^a]', "a\0b", 3, 3),
    "nul class": ("root ::= [\\x00-\\x01]{1,2}", "\0\x01a", 2, 2),
    "json string by hand": (
        'root ::= "\\"" ([^"\\\\] | "\\\\" ["\\\\])* "\\""',
        'a"\\',
        3,
        8,
    ),
    "ambiguous": ('root ::= ("a" | "aa" | "aaa")+ "b"', "ab", 4, 9),
    "long tail": ('root ::= x x x\nx ::= "a" | ""', "ab", 3, 3),
    "names": ("root ::= a-b.c_d\na-b.c_d ::= r-1 r-1\nr-1 ::= [ab]", "ab", 2, 2),
    "counted run": ('root ::= "," [ab]{2,6} ","', "ab,", 8, 8),
    "counted run from nothing": ('root ::= [ab]{0,5} ",a"', "ab,", 7, 7),
    "counted runs of an alternative": (
        'root ::= [ab]{5,5} "," | [a]{1,7} ",a" | "b" [a]{0,5} "b"', "ab,", 9, 9
    ),
    "counted wide run": ('root ::= "," [^,]{1,5} ","', "a,é", 3, 7),
    "counted run in a list": ('root ::= x ("," x)*\nx ::= "b" [a]{1,5} "b"', "ab,", 2, 12),
    "counted run before a run": ('root ::= [ab]{1,5} "," [a,]{0,5} "b"', "ab,", 5, 12),
    "counted rule": ('root ::= x{5,6} ","\nx ::= "a" | "bb"', "ab,", 13, 13),
    "counted": ('root ::= "a"{1,5000} "b"', "ab", 5, 10),
}  # fmt: skip

EXPRESSIONS = {
    # expression: alphabet, characters explored, characters that complete everything explored
    "": ("ab", 1, 1),
    "a": ("ab", 1, 1),
    "a|": ("ab", 1, 1),
    "a*b": ("ab", 3, 7),
    "(a|b)*abb": ("ab", 4, 10),
    "(ab|a)(bc|c)?": ("abc", 4, 4),
    "a{2,4}b?": ("ab", 5, 5),
    "(a{1,2}b){2}": ("ab", 6, 6),
    "a+?b*?": ("ab", 3, 7),
    "[^a]b": ("abc\n", 2, 2),
    ".{2}": ("aé\n", 2, 2),
    r"\d\w": ("a1-", 2, 2),
    r"[\s-]a": ("a -", 2, 2),
    r"\x41\u0042?": ("ABb", 2, 2),
    "^a$|^b$": ("ab", 1, 1),
    "^a|b$": ("ab", 1, 1),
    "(|a)(|b)": ("ab", 2, 2),
    "((a*)*)*b": ("ab", 3, 7),
    r"/\*(\*+[^*/]|[^*])*\*+/": ("/*a", 4, 9),
    "(a|b)*a(a|b){3}": ("ab", 4, 11),
    "[ab]*a[ab]{5}": ("ab", 3, 12),
    "(aa|aaa)*": ("a", 6, 12),
    "[é-ê]{1,3}": ("éêa", 3, 3),
    "[😀-🙏]{2}": ("😀😂a", 2, 2),
    r"\0a\0": ("a\0", 3, 3),
    "(a|bc|def)+": ("abcdef", 1, 6),
    "a(b(c(d)?)?)?": ("abcd", 4, 4),
    r"\[\]\{\}": ("[]{}", 4, 4),
    r"\^\$\.\*": ("^$.*", 4, 4),
    r'"\\"': ('"\\', 3, 3),
}

CHOICES = {
    "one": ["abc"],
    "shared beginnings": ["a", "ab", "abc", "b"],
    "shared ends": ["xab", "yab", "zb"],
    "with empty": ["", "a"],
    "only empty": [""],
    "case and blanks": ["Yes", "yes", " yes", "yes "],
    "unicode": ["é", "e\u0301", "😀é", "😀"],
    "nul": ["\0", "a\0", "\0a"],
    "quotes": ['"', "\\", '\\"', "'"],
    "metacharacters": [".*", "[a]", "a|b", "(a)", "a?", "^a$", "{1}", "-"],
    "digits": [str(number) for number in range(60, 140)],
}


# What the standard library calls a match, where both dialects agree on the alphabets used here.
def matches(pattern, text):
    return re.fullmatch(f"(?:{pattern})", text, re.ASCII) is not None


def texts(alphabet, characters):
    return ("".join(t) for n in range(characters + 1) for t in product(alphabet, repeat=n))


@pytest.mark.parametrize("form", [gbnf_grammar, gbnf_language], ids=["as written", "admitted"])
@pytest.mark.parametrize("name", GRAMMARS)
def test_a_grammar_offers_exactly_what_can_be_completed(name, form):
    text, alphabet, characters, complete = GRAMMARS[name]
    vocabulary = crossing_vocabulary(alphabet)
    written = without_dead_branches(gbnf_grammar(text, vocabulary))
    language = words(written, spellable(vocabulary), complete)
    assert language
    grammar = without_dead_branches(form(text, vocabulary))
    assert Exploration(grammar, vocabulary).differences(language, characters) == []


@pytest.mark.parametrize("pattern", EXPRESSIONS)
def test_an_expression_offers_exactly_what_can_be_completed(pattern):
    alphabet, characters, complete = EXPRESSIONS[pattern]
    vocabulary = crossing_vocabulary(alphabet)
    grammar = regex_grammar(pattern)
    alphabet = spellable(vocabulary)
    language = words(grammar, alphabet, complete)
    assert language == {text for text in texts(alphabet, complete) if matches(pattern, text)}
    assert Exploration(grammar, vocabulary).differences(language, characters) == []


@pytest.mark.parametrize("pattern", ["(a|b)*a(a|b){3}", "(ab|a)*b?", "(a|aa)*b{1,3}", "é*(é|a)a"])
def test_following_several_states_at_once_offers_the_same(pattern):
    alphabet = "abé" if "é" in pattern else "ab"
    vocabulary = crossing_vocabulary(alphabet)
    grammar = nondeterministic_grammar(Nfa.of(whole_expression(pattern)))
    language = {
        text for text in texts(alphabet, 10 if alphabet == "ab" else 7) if matches(pattern, text)
    }
    assert Exploration(grammar, vocabulary).differences(language, 2) == []


@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_offers_every_token_that_a_member_goes_on_with(name):
    members = CHOICES[name]
    vocabulary = crossing_vocabulary("".join(sorted(set("".join(members)) or {"a"})))
    exploration = Exploration(choice_grammar(members), vocabulary)
    longest = max(map(len, members))
    assert exploration.differences(set(members), longest) == []
