"""Constant values with the real vocabulary: every split into tokens is a path through the masks."""

import json
import random

import pytest

from ninfer.contract import OutputConstraint
from ninfer.text import ConstraintCompiler
from support.contestants import token_ids
from support.vocabularies import qwen_vocabulary

VALUES = [
    "\n" + " " * 31,
    '\x01\u2028"\\é😀',
    "</think><tool_call>",
    {"a b": [1, None, "  \n  "], "é": {"x": -0.5}},
]


@pytest.fixture(scope="module")
def compiler():
    return ConstraintCompiler(qwen_vocabulary())


def random_split(text, ids, source):
    tokens, offset = [], 0
    while offset < len(text):
        lengths = [n for n in range(1, 33) if text[offset : offset + n] in ids]
        length = source.choice([n for n in lengths if offset + n <= len(text)])
        tokens.append(ids[text[offset : offset + length]])
        offset += length
    return tokens


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_every_split_of_a_constant_is_accepted_and_nothing_else(compiler, value):
    vocabulary = qwen_vocabulary()
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    compiled = compiler.compile(OutputConstraint.json_schema(json.dumps({"const": value})))
    source = random.Random(11)
    for _ in range(60):
        tokens = random_split(text, token_ids(vocabulary), source)
        matcher = compiler.matcher(compiled)
        assert matcher.preview([*tokens, vocabulary.eos_ids[0]]) == len(tokens) + 1
        matcher.discard()
        cut = source.randrange(len(tokens))
        assert matcher.preview([*tokens[:cut], vocabulary.eos_ids[0]]) == cut


def test_control_tokens_are_never_the_spelling_of_a_text(compiler):
    vocabulary = qwen_vocabulary()
    compiled = compiler.compile(OutputConstraint.json_schema('{"type":"string"}'))
    matcher = compiler.matcher(compiled)
    assert matcher.feed(b'"') == 1
    mask = memoryview(bytearray(4 * matcher.mask_words)).cast("i", (1, matcher.mask_words))
    matcher.lookahead((), mask)
    words = mask.cast("B").cast("I")
    allowed = [
        t for t, kind in enumerate(vocabulary.classes) if words[t // 32] >> t % 32 & 1 and kind
    ]
    assert allowed == []
