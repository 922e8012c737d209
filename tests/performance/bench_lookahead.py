"""One lookahead over 15 drafts: one native call against the same through the core's Python package.

"The same" fills every position, looks for dead ends, checks each draft against its mask, takes it
and goes back; the calls alone are measured too. Bar: at most 0.6 of the time on the schema.
"""

from __future__ import annotations

import time
from functools import cache

import pytest

from ninfer.contract import OutputConstraint
from ninfer.text import GrammarCore, Matcher, lookahead_batch
from ninfer.text.admission import admit
from ninfer.text.emitter import emit
from support.core_package import core_package, package_compiler
from support.masks import mask_buffer
from support.vocabularies import qwen_ids, qwen_vocabulary

DRAFTS = 15
ROWS = 8
BAR = 0.6

SCHEMA = """{"type": "object", "additionalProperties": false, "required": ["name", "age", "city"],
"properties": {"name": {"type": "string"}, "age": {"type": "integer"},
"city": {"type": "string"}}}"""
TEXT = '{"name":"Alice Smith went","age":41,"city":"Berlin"}'
CONSTRAINTS = {
    "schema": OutputConstraint.json_schema(SCHEMA),
    "object": OutputConstraint.json_object(),
    "choice": OutputConstraint.choice([TEXT, TEXT.replace("Berlin", "Paris")]),
}


@cache
def core() -> GrammarCore:
    return GrammarCore(qwen_vocabulary())


@cache
def drafts() -> list[int]:
    return qwen_ids(TEXT)[:DRAFTS]


def native(name, rows=1):
    """Return a call of our lookahead over one or more rows, its state kept ready."""
    grammar = core().compile(emit(admit(CONSTRAINTS[name], qwen_vocabulary())))
    matchers = [Matcher(grammar) for _ in range(rows)]
    masks = mask_buffer(rows, DRAFTS + 1, matchers[0].mask_words)
    if rows > 1:
        return lambda: lookahead_batch(matchers, [drafts()] * rows, masks)
    single = masks.cast("B").cast("i", (DRAFTS + 1, matchers[0].mask_words))
    tokens = drafts()
    return lambda: matchers[0].lookahead(tokens, single)


@cache
def compiler():
    return package_compiler(qwen_vocabulary())


def through_package(name):
    """Return two calls of the core's package: the same work, and its calls alone."""
    package = core_package()
    text = emit(admit(CONSTRAINTS[name], qwen_vocabulary()))
    matcher = package.GrammarMatcher(compiler().compile_grammar(text))
    masks = package.allocate_token_bitmask(DRAFTS + 1, qwen_vocabulary().token_domain)
    rows = masks.numpy()
    tokens = drafts()

    def same():
        steps = 0
        for position in range(DRAFTS + 1):
            matcher.fill_next_token_bitmask(masks, position)
            if not rows[position].any() or position == DRAFTS:
                break
            token = tokens[position]
            if not int(rows[position, token >> 5]) >> (token & 31) & 1:
                break
            if not matcher.accept_token(token):
                break
            steps += 1
            if matcher.is_terminated():
                break
        matcher.rollback(steps)
        return steps

    def calls():
        for position, token in enumerate(tokens):
            matcher.fill_next_token_bitmask(masks, position)
            matcher.accept_token(token)
        matcher.fill_next_token_bitmask(masks, DRAFTS)
        matcher.rollback(DRAFTS)
        return DRAFTS

    return same, calls


def seconds(call, rounds=30, repeats=9):
    """Return the least CPU time of a call, which other processes disturb least."""
    times = []
    for _ in range(repeats):
        start = time.thread_time()
        for _ in range(rounds):
            call()
        times.append((time.thread_time() - start) / rounds)
    return min(times)


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_lookahead_in_one_call(benchmark, name):
    assert benchmark(native(name)).reachable == DRAFTS + 1


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_lookahead_through_the_package(benchmark, name):
    assert benchmark(through_package(name)[0]) == DRAFTS


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_the_packages_calls_alone(benchmark, name):
    assert benchmark(through_package(name)[1]) == DRAFTS


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_lookahead_of_eight_rows_in_one_call(benchmark, name):
    found = benchmark(native(name, ROWS))
    assert [row.reachable for row in found] == [DRAFTS + 1] * ROWS


def test_one_call_costs_at_most_the_bar(benchmark):
    if not benchmark.enabled:
        pytest.skip("timings are compared only with benchmarks enabled")
    ours, theirs = native("schema"), through_package("schema")[0]
    ours(), theirs()
    ratio = seconds(ours) / seconds(theirs)
    benchmark.extra_info["ratio"] = ratio
    benchmark(ours)
    assert ratio <= BAR
