"""The shared JSON rules against the standard library's reader and against its writer."""

from __future__ import annotations

import json
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ninfer.text.automata.facts import sample_word
from ninfer.text.emitter import emit
from ninfer.text.grammar import Automaton, Grammar
from ninfer.text.json_rules import (
    INTEGER,
    JSON_RULES,
    NUMBER,
    STRING,
    json_object_grammar,
    json_value_grammar,
)
from support.languages import Exploration
from support.vocabularies import byte_vocabulary

VOCABULARY = byte_vocabulary(b'":', b'",', b"},", b"]]", b"\\u", b"\\'")


def exploration(entry):
    return Exploration(Grammar(entry, JSON_RULES), VOCABULARY)


STRINGS = exploration(STRING)
NUMBERS = exploration(NUMBER)
INTEGERS = exploration(INTEGER)
VALUES = Exploration(json_value_grammar(), VOCABULARY)
OBJECTS = Exploration(json_object_grammar(), VOCABULARY)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.floats(allow_nan=False,
    allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner,
    max_size=3),
    max_leaves=8,
)  # fmt: skip


def compact(value, **options):
    return json.dumps(value, separators=(",", ":"), **options)


@given(json_values)
def test_every_value_can_be_written(value):
    spelled = compact(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    assert VALUES.accepts(spelled)
    assert VALUES.accepts(compact(value))
    assert OBJECTS.accepts(spelled) == isinstance(value, dict)


@given(st.text('{}[]":,0a\\u nd8', max_size=8))
def test_what_is_accepted_can_be_read(text):
    if VALUES.accepts(text):
        json.loads(text)


@pytest.mark.parametrize(
    "text",
    ['"\\"\\\\\\/\\b\\f\\n\\r\\t"', '"\\u00e9"', '"\\ud83d\\ude00"', '"\\uD7ff\\ue000"', '""',
     '"é😀\x7f"',     '"\\u0000"'],
)  # fmt: skip
def test_legal_strings(text):
    assert STRINGS.accepts(text)
    json.loads(text).encode()


@pytest.mark.parametrize(
    "text",
    ['"\t"', '"\x01"', '"\n"', '"\x00"', '"\\\'"', '"\\a"', '"\\x41"', '"\\u12"', '"\\U00000041"',
     '"\\ud83d"', '"\\ud83dx"', '"\\ud83d\\u0041"', '"\\ude00"', '"\\ude00\\ud83d"', '"a', 'a"',
     '"\\"', '"""', "'a'", '"\\ud83d\\ud83d\\ude00"'],
)  # fmt: skip
def test_illegal_strings(text):
    assert not STRINGS.accepts(text)


def test_random_strings_are_unicode():
    source = random.Random(4)
    body = JSON_RULES["json_string"]
    assert isinstance(body, Automaton)
    for _ in range(500):
        spelled = sample_word(body.dfa, source, 0.2)
        json.loads(spelled).encode()
        assert STRINGS.accepts(spelled)


NUMBER_PATTERN = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")


@given(st.text("-+.0123eE", max_size=7))
def test_numbers_are_those_of_the_standard(text):
    assert NUMBERS.accepts(text) == bool(NUMBER_PATTERN.fullmatch(text))
    assert INTEGERS.accepts(text) == bool(re.fullmatch("-?(0|[1-9][0-9]*)", text))


@pytest.mark.parametrize("text", ["{ }", '{"a" :1}', '{"a": 1}', "[1, 2]", "\n{}", "{}\n", "[1,]"])
def test_no_white_space_is_legal_outside_strings(text):
    assert not VALUES.accepts(text)


def test_shared_rules_are_spelled_alike_in_every_grammar():
    rules = [set(emit(g).splitlines()) for g in (json_object_grammar(), json_value_grammar())]
    shared = {line.split(" (= ")[0] for line in rules[0]} & {
        line.split(" (= ")[0] for line in rules[1]
    }
    assert {line.split()[0] for line in shared} >= {
        "json_string",
        "json_number",
        "json_object",
        "json_array",
        "json_value",
    }
