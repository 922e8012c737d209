"""Raw values and their closing as one automaton: the same language as the definition."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ninfer.qwen_frontend.closed_values import closed_values
from ninfer.text.regex import pattern_automaton

PATTERNS = [
    "",
    "^[\\s\\S]*$",
    "^[a-c]*$",
    "a",
    "^(\\n|<)*$",
    "^a?\\n?<?$",
    "^(\\n<a|b)*$",
    "\\n$",
    "^$",
]


def is_closed(values, closing: str, text: str) -> bool:
    """Return the definition: a value without the closing, then the closing."""
    value = text.removesuffix(closing)
    return (
        text.endswith(closing) and closing not in (value + closing)[:-1] and values.accepts(value)
    )


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("closing", ["\n<", "\n<a", "a", "\n"])
def test_short_texts_belong_exactly_where_they_should(pattern, closing):
    values = pattern_automaton(pattern)
    machine = closed_values(values, closing)
    for length in range(7):
        for letters in itertools.product("\n<ab", repeat=length):
            text = "".join(letters)
            assert machine.accepts(text) == is_closed(values, closing, text), repr(text)


@given(st.sampled_from(PATTERNS), st.text("\n</parmet>abc上", max_size=20), st.booleans())
def test_long_texts_belong_exactly_where_they_should(pattern, text, is_ended):
    values = pattern_automaton(pattern)
    closing = "\n</parameter>"
    text += closing if is_ended else ""
    assert closed_values(values, closing).accepts(text) == is_closed(values, closing, text)
