"""Finite sets: canonical, byte-exact, every prefix against every token."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ninfer.contract import CacheOutcome, InvalidChoice, OptionPath, OutputConstraint
from ninfer.text import ConstraintCompiler
from ninfer.text.choice import canonical_choice, choice_grammar
from ninfer.text.emitter import emit
from support.languages import Exploration, crossing_vocabulary
from support.vocabularies import byte_vocabulary

LETTERS = "ab,é"
VOCABULARY = crossing_vocabulary(LETTERS)


@given(st.sets(st.text(LETTERS, max_size=4), min_size=1, max_size=12))
def test_every_prefix_times_every_token_is_membership(members):
    assert Exploration(choice_grammar(list(members)), VOCABULARY).differences(members, 4) == []


def test_order_and_repetition_do_not_matter():
    first = choice_grammar(["b", "a", "ab", "a"])
    assert first == choice_grammar(["ab", "b", "a"])
    assert emit(first) == emit(choice_grammar(["a", "ab", "b"]))
    compiler = ConstraintCompiler(VOCABULARY)
    compiler.compile(OutputConstraint.choice(["b", "a", "b"]))
    again = compiler.compile(OutputConstraint.choice(("a", "b")))
    assert again.cache is CacheOutcome.HIT
    other = compiler.compile(OutputConstraint.choice(["a:b", "c"]))
    assert other.cache is CacheOutcome.BUILT
    assert compiler.compile(OutputConstraint.choice(["a", "b:c"])).cache is CacheOutcome.BUILT


def test_nothing_is_normalised():
    texts = ["é", "e\u0301", "É", " é", "é\n", "\ufeffé", "ﬁ", "fi"]
    exploration = Exploration(choice_grammar(texts[:-1]), byte_vocabulary())
    assert [text for text in texts if exploration.accepts(text)] == texts[:-1]


@pytest.mark.parametrize("empty", [[], ()])
def test_an_empty_list_is_refused(empty):
    with pytest.raises(InvalidChoice) as refusal:
        canonical_choice(empty)
    assert refusal.value.location == OptionPath("choice")


@pytest.mark.parametrize("broken", ["\ud800", "a\udc00", "\ud83d\ude00"])
def test_text_that_is_no_unicode_is_refused_by_its_index(broken):
    with pytest.raises(InvalidChoice) as refusal:
        choice_grammar(["fine", "", broken, "x"])
    assert refusal.value.location == OptionPath("choice", 2)


def test_large_sets_stay_small():
    numbered = [f"item_{number:06d}_suffix" for number in range(10_000)]
    assert len(emit(choice_grammar(numbered))) < 200
    source = random.Random(3)
    words = ["".join(source.choices("abcdefghij", k=source.randint(3, 12))) for _ in range(10_000)]
    assert len(emit(choice_grammar(words))) < 2 * sum(map(len, words))


def test_members_of_a_large_set_are_told_from_their_neighbours():
    source = random.Random(5)
    words = {"".join(source.choices("abc", k=source.randint(1, 9))) for _ in range(2_000)}
    exploration = Exploration(choice_grammar(sorted(words)), byte_vocabulary())
    others = {word[:-1] for word in words} | {f"{word}a" for word in words}
    probes = sorted(words | others)
    assert [text for text in probes if exploration.accepts(text) != (text in words)] == []
