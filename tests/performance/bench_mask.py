"""The mask of one position: the core's Python package, one native call, and a batch of rows."""

from __future__ import annotations

from functools import cache

import pytest

from ninfer.contract import OutputConstraint
from ninfer.text import CompiledGrammar, GrammarCore, Matcher, lookahead_batch
from ninfer.text.admission import admit
from ninfer.text.emitter import emit
from support.masks import advance, mask_buffer
from support.vocabularies import qwen_tokenizer, qwen_vocabulary

ROWS = 64

POSITIONS = {
    "one token": (OutputConstraint.choice(["yes, of course", "yes, indeed"]), ""),
    "in a string": (OutputConstraint.json_schema('{"type": "string"}'), '"Alice'),
    "in an object": (OutputConstraint.json_object(), '{"a":[1,'),
    "in a pattern": (OutputConstraint.regex("[a-z0-9-]{1,64}"), "ab"),
}


@cache
def grammar(name: str) -> CompiledGrammar:
    core = GrammarCore(qwen_vocabulary())
    return core.compile(emit(admit(POSITIONS[name][0], qwen_vocabulary())))


def matcher(name: str) -> Matcher:
    at = Matcher(grammar(name))
    advance(at, qwen_tokenizer().encode(POSITIONS[name][1]).ids)
    return at


@pytest.mark.parametrize("name", POSITIONS)
def test_mask_in_one_call(benchmark, name):
    at = matcher(name)
    masks = mask_buffer(1, at.mask_words)
    assert benchmark(at.lookahead, (), masks).filled == 1


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", POSITIONS)
def test_masks_of_a_batch(benchmark, name, threads):
    rows = [matcher(name) for _ in range(ROWS)]
    masks = mask_buffer(ROWS, 1, rows[0].mask_words)
    found = benchmark(lookahead_batch, rows, [()] * ROWS, masks, threads)
    assert {row.filled for row in found} == {1}


@pytest.mark.parametrize("name", POSITIONS)
def test_a_token_previewed_and_discarded(benchmark, name):
    at = matcher(name)
    masks = mask_buffer(1, at.mask_words)
    at.lookahead((), masks)
    word = next(n for n, bits in enumerate(masks.tolist()[0]) if bits)
    bits = masks[0, word] & 0xFFFFFFFF
    token = 32 * word + (bits & -bits).bit_length() - 1

    def turn():
        taken = at.preview((token,))
        at.discard()
        return taken

    assert benchmark(turn) == 1
