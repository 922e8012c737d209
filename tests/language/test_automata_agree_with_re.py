"""Automata against the standard library's matcher, and their operations against sets."""

from __future__ import annotations

import os
import random
import re
from itertools import islice, product

from hypothesis import given
from hypothesis import strategies as st

from ninfer.contract import InvalidRegex
from ninfer.text import GrammarCore
from ninfer.text.automata.characters import CharacterSet
from ninfer.text.automata.dfa import NOTHING
from ninfer.text.automata.facts import (
    count_words,
    is_finite,
    longest_characters,
    sample_word,
    shortest_characters,
    words,
)
from ninfer.text.automata.limits import AutomatonLimit
from ninfer.text.automata.operations import (
    ANY_TEXT,
    bounded,
    complement,
    difference,
    intersection,
    length_automaton,
    union,
)
from ninfer.text.automata.subset import compile_expression
from ninfer.text.automata.words import word_automaton
from ninfer.text.grammar import Automaton
from ninfer.text.regex import pattern_automaton, regex_grammar, whole_expression
from support.languages import Exploration, automaton_words
from support.vocabularies import byte_vocabulary

SLOW = bool(os.environ.get("NINFER_SLOW"))
PAIRS = 200_000 if SLOW else 20_000
STATES = 300
BYTES = byte_vocabulary()

# ECMAScript's classes, spelled out for the standard library, which reads them otherwise.
SPACE = r"\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
ATOMS = {
    "a": "a", "b": "b", "c": "c", "-": "-", "é": "é", "😀": "😀", ".": r"[^\n\r\u2028\u2029]",
    r"\d": "[0-9]", r"\D": "[^0-9]", r"\w": "[A-Za-z0-9_]", r"\W": "[^A-Za-z0-9_]",
    r"\s": f"[{SPACE}]", r"\S": f"[^{SPACE}]", "[ab]": "[ab]", "[^ab]": "[^ab]", "[a-cé]": "[a-cé]",
    r"[\d-]": "[0-9-]", r"[^\w\s]": f"[^A-Za-z0-9_{SPACE}]", r"\x61": "a", r"\u0062": "b",
}  # fmt: skip
ALPHABET = "aabbc-é😀1_ \n\u2028\u00a0Z"
QUANTIFIERS = ("", "", "", "*", "+", "?", "{2}", "{1,2}", "{0,3}", "{2,}", "*?", "+?", "??")


def random_pattern(source: random.Random, depth: int) -> tuple[str, str]:
    """Return one expression in both dialects."""
    if depth == 0 or source.random() < 0.3:
        ours, theirs = source.choice(list(ATOMS.items()))
    elif source.random() < 0.6:
        parts = [random_pattern(source, depth - 1) for _ in range(source.randint(1, 3))]
        return "".join(p for p, _ in parts), "".join(p for _, p in parts)
    else:
        parts = [random_pattern(source, depth - 1) for _ in range(source.randint(1, 3))]
        ours = "({})".format("|".join(p for p, _ in parts))
        theirs = "(?:{})".format("|".join(p for _, p in parts))
    # The standard library backtracks: loops in loops would never end.
    loops = any(mark in ours for mark in ("*", "+", ",}", ",3}"))
    quantifier = source.choice(("", "?", "{2}") if loops else QUANTIFIERS)
    return ours + quantifier, theirs + quantifier


def test_whole_matches_and_searches_agree_with_the_standard_library():
    source = random.Random(20)
    disagreements = []
    for _ in range(PAIRS // 20):
        ours, theirs = random_pattern(source, 3)
        try:
            whole = compile_expression(whole_expression(ours), STATES)
            searched = pattern_automaton(ours, STATES)
        except AutomatonLimit:
            continue
        theirs_compiled = re.compile(theirs)
        texts = ["".join(source.choices(ALPHABET, k=source.randint(0, 6))) for _ in range(17)]
        texts += [] if whole.is_empty else [sample_word(whole, source) for _ in range(3)]
        for text in (t for t in texts if len(t) <= 10):
            if whole.accepts(text) != (theirs_compiled.fullmatch(text) is not None):
                disagreements.append((ours, text, "whole"))
            if searched.accepts(text) != (theirs_compiled.search(text) is not None):
                disagreements.append((ours, text, "search"))
    assert disagreements == []


def test_matchers_of_whole_expressions_agree_with_the_standard_library():
    source = random.Random(21)
    core = GrammarCore(BYTES)
    disagreements, refused = [], 0
    for _ in range(PAIRS // 200):
        ours, theirs = random_pattern(source, 4)
        try:
            grammar = regex_grammar(ours)
        except InvalidRegex:
            refused += 1
            continue
        exploration, judge = Exploration(grammar, BYTES, core), re.compile(theirs)
        texts = ["".join(source.choices(ALPHABET, k=source.randint(0, 6))) for _ in range(17)]
        if isinstance(grammar.entry, Automaton):
            texts += [sample_word(grammar.entry.dfa, source) for _ in range(3)]
        disagreements += [
            (ours, text)
            for text in texts
            if len(text) <= 10 and exploration.accepts(text) != (judge.fullmatch(text) is not None)
        ]
    assert disagreements == []
    assert refused < PAIRS // 2_000


SHORT = ["".join(t) for n in range(5) for t in product("abc", repeat=n)]
expressions = st.integers(0, 2**32).map(
    lambda seed: random_pattern(_letters(random.Random(seed)), 3)[0]
)


def _letters(source: random.Random) -> random.Random:
    # Only letters of the small alphabet, so that the sets below tell the machines apart.
    choose = source.choice
    source.choice = lambda options: (  # type: ignore[method-assign]
        choose([("a", "a"), ("b", "b"), ("[ab]", "[ab]"), ("c", "c")])
        if isinstance(options, list)
        else choose(options)
    )
    return source


def language(dfa):
    return set(automaton_words(dfa, "abc", 4))


@given(expressions, expressions)
def test_operations_are_those_of_sets(first, second):
    a, b = (compile_expression(whole_expression(e)) for e in (first, second))
    assert language(intersection(a, b)) == language(a) & language(b)
    assert language(union(a, b)) == language(a) | language(b)
    assert language(difference(a, b)) == language(a) - language(b)
    assert language(complement(a)) == set(SHORT) - language(a)
    assert complement(complement(a)) == a
    assert intersection(a, complement(a)) == NOTHING
    assert union(a, complement(a)) == ANY_TEXT


@given(expressions, st.integers(0, 4), st.integers(0, 4))
def test_length_bounds_cut_the_language(expression, low, more):
    dfa = compile_expression(whole_expression(expression))
    high = low + more
    kept = {w for w in language(dfa) if low <= len(w) <= high}
    assert language(bounded(dfa, low, high)) == kept
    assert language(bounded(dfa, low, None)) == {w for w in language(dfa) if len(w) >= low}
    assert bounded(dfa, high + 1, high) == NOTHING


@given(expressions)
def test_facts_agree_with_the_words(expression):
    dfa = bounded(compile_expression(whole_expression(expression)), 0, 4)
    found = language(dfa)
    assert is_finite(dfa)
    assert count_words(dfa) == len(found)
    assert shortest_characters(dfa) == min(map(len, found), default=None)
    assert longest_characters(dfa) == max(map(len, found), default=0)
    assert list(words(dfa)) == sorted(found, key=lambda w: (len(w), w))


@given(st.sets(st.text("abé\0😀", max_size=5), max_size=30))
def test_a_set_of_words_has_one_minimal_automaton(members):
    dfa = word_automaton(sorted(members))
    assert set(words(dfa)) == members
    assert dfa == union(dfa, NOTHING)


def test_equal_languages_are_equal_values():
    same = [
        ("(a|b)*abb", "[ab]*abb"),
        ("a{2,3}", "aa|aaa"),
        ("(ab|ac)d", "a[bc]d"),
        ("a*", "(a*)*"),
        ("(a|ab)(c|bc)", "abbc|abc|ac"),
        (r"\d+", "[0-9][0-9]*"),
    ]
    for first, second in same:
        machines = [compile_expression(whole_expression(e)) for e in (first, second)]
        assert machines[0] == machines[1]
        assert hash(machines[0]) == hash(machines[1])


def test_lengths_alone_are_an_automaton():
    assert list(islice(words(intersection(length_automaton(2, 3), _over("ab"))), 3)) == [
        "aa",
        "ab",
        "ba",
    ]
    assert longest_characters(length_automaton(1, None)) is None
    assert count_words(_over("a")) is None


def _over(characters):
    members = CharacterSet.from_text(characters)
    return compile_expression(whole_expression("[" + "".join(map(chr, members)) + "]*"))


def test_sets_of_characters_never_hold_surrogates():
    everything = ~CharacterSet()
    assert len(everything) == 0x110000 - 0x800
    assert 0xD800 not in everything
    assert ~everything == CharacterSet()
    assert ~~CharacterSet.from_text("az\ue000") == CharacterSet.from_text("az\ue000")
    assert CharacterSet.of([(0xD000, 0xE001)]).ranges == ((0xD000, 0xD7FF), (0xE000, 0xE001))
