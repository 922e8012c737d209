"""The mask of one position: the core's Python package, one native call, and a batch of rows."""

from __future__ import annotations

from functools import cache

import pytest

from ninfer.contract import OutputConstraint
from ninfer.text import CompiledGrammar, GrammarCore, Matcher, lookahead_batch
from ninfer.text.admission import admit
from ninfer.text.emitter import emit
from support.core_package import core_package, package_compiler
from support.masks import advance, mask_buffer
from support.vocabularies import qwen_ids, qwen_vocabulary

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


@cache
def compiler():
    return package_compiler(qwen_vocabulary())


def matcher(name: str) -> Matcher:
    at = Matcher(grammar(name))
    advance(at, qwen_ids(POSITIONS[name][1]))
    return at


@pytest.mark.parametrize("name", POSITIONS)
def test_mask_in_one_call(benchmark, name):
    at = matcher(name)
    masks = mask_buffer(1, at.mask_words)
    assert benchmark(at.lookahead, (), masks).filled == 1


@pytest.mark.parametrize("name", POSITIONS)
def test_mask_through_the_package(benchmark, name):
    package = core_package()
    text = emit(admit(POSITIONS[name][0], qwen_vocabulary()))
    at = package.GrammarMatcher(compiler().compile_grammar(text))
    assert all(map(at.accept_token, qwen_ids(POSITIONS[name][1])))
    masks = package.allocate_token_bitmask(1, qwen_vocabulary().token_domain)
    assert benchmark(at.fill_next_token_bitmask, masks)


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
