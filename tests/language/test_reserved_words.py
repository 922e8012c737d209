"""Reserved words as content: spelled by ordinary tokens, while the special ids stay impossible."""

import pytest

from ninfer.contract import OutputConstraint
from ninfer.text import ConstraintCompiler
from support.masks import advance, allowed_tokens
from support.vocabularies import byte_vocabulary

WORDS = (b"<think>", b"</think>", b"<tool_call>", b"<|im_end|>")
VOCABULARY = byte_vocabulary(b"<", b"think", b"<t", control=WORDS, unused=3, eos=2)
CONTROL = set(range(259, 263))


@pytest.fixture(scope="module")
def compiler():
    return ConstraintCompiler(VOCABULARY)


CONSTRAINTS = {
    "choice": OutputConstraint.choice([word.decode() for word in WORDS]),
    "grammar": OutputConstraint.grammar("root ::= [^\\n]+"),
    "const": OutputConstraint.json_schema('{"enum": ["<think>", "</think>", "<tool_call>"]}'),
}


@pytest.mark.parametrize("word", WORDS[:3])
@pytest.mark.parametrize("kind", CONSTRAINTS)
def test_a_reserved_word_is_written_by_bytes_and_never_by_its_id(compiler, kind, word):
    matcher = compiler.matcher(compiler.compile(CONSTRAINTS[kind]))
    text = b'"' + word + b'"' if kind == "const" else word
    for byte in text:
        assert not allowed_tokens(matcher) & CONTROL
        advance(matcher, [byte])
    assert matcher.can_end
    assert allowed_tokens(matcher) >= set(VOCABULARY.eos_ids)
    assert not allowed_tokens(matcher) & CONTROL
