"""Why the emitter spells as it does: forms of the core's EBNF that mean something else, or cost.

Where a test here fails after an upgrade the core has moved, and the emitter may spell more simply.
"""

from __future__ import annotations

import time

import pytest

from ninfer.text import GrammarCore, Matcher
from support.masks import allowed_tokens
from support.vocabularies import byte_vocabulary

VOCABULARY = byte_vocabulary(b"ab", b"ba", b"a,", b"a.")
CORE = GrammarCore(VOCABULARY)


def taken(ebnf: str, *texts: bytes) -> list[bytes]:
    """Return the texts that are whole words of a grammar."""
    grammar = CORE.compile(ebnf)
    found = []
    for text in texts:
        matcher = Matcher(grammar)
        if matcher.feed(text) == len(text) and matcher.can_end:
            found.append(text)
    return found


def test_nul_twice_in_a_class_is_one_nul():
    assert taken('root ::= "a" [\\u0000\\u0000] "b"\n', b"a\0b", b"ab", b"a\0\0b") == [b"a\0b"]


@pytest.mark.parametrize(
    ("optional", "alternative", "wrong"),
    [
        ("(?:ba*)?", "(?:ba*|)", b"aa"),
        ("(?:a*b)?", "(?:a*b|)", b"aa"),
        ("a(?:aaa*)?", "a(?:aaa*|)", b"aa"),
    ],
)
def test_an_optional_group_leaks_the_loops_at_its_ends(optional, alternative, wrong):
    assert taken(f'root ::= x\nx ::= Regex("{optional}")\n', wrong) == [wrong]
    assert taken(f'root ::= x\nx ::= Regex("{alternative}")\n', wrong) == []


def test_a_class_of_an_expression_that_crosses_byte_lengths_takes_overlong_forms():
    overlong = b"\xe0\x80\x80"
    crossing = 'root ::= x\nx ::= Regex("[\\u0061-\\uffff]")\n'
    parted = 'root ::= x\nx ::= Regex("[\\u0061-\\u07ff]|[\\u0800-\\ud7ff\\ue000-\\uffff]")\n'
    assert taken(crossing, overlong, "é".encode(), "上".encode())[0] == overlong
    assert taken(parted, overlong, "é".encode(), "上".encode()) == ["é".encode(), "上".encode()]


def test_escapes_of_four_digits_are_exact_inside_expressions():
    for code in range(128):
        expression = f'root ::= x\nx ::= Regex("[\\\\u{code:04x}]")\n'
        assert taken(expression, *(bytes([b]) for b in range(128))) == [bytes([code])]


def test_what_follows_is_a_hint_that_never_widens_or_narrows_when_it_is_true():
    plain = 'root ::= "," x "." | x\nx ::= "a" | "ab" | "b" x'
    hinted = plain.replace('"a" | "ab" | "b" x', '("a" | "ab" | "b" x) (= [.])')
    texts = [b",a.", b",ab.", b",ba.", b"a", b"bab", b",a", b"a.", b"b"]
    assert taken(hinted, *texts) == taken(plain, *texts)
    masks = [
        allowed_tokens(matcher)
        for matcher in (Matcher(CORE.compile(text)) for text in (plain, hinted))
        if matcher.feed(b",")
    ]
    assert masks[0] == masks[1]


def test_a_negated_class_in_front_of_a_text_is_counted_in_one_state():
    counted = 'root ::= "." x\nx ::= c{1,4000} ","\nc ::= [^\\u0000-`{-\\U0010ffff]\n'
    start = time.process_time()
    assert taken(counted, b".a,", b"." + b"a" * 4_000 + b",", b"." + b"a" * 4_001 + b",") == [
        b".a,",
        b"." + b"a" * 4_000 + b",",
    ]
    assert CORE.compile(counted).memory_bytes < 1 << 20
    assert time.process_time() - start < 5
