"""The first request of an engine: cold, after the warm-up, and beside one that is still at work.

Every request meets a compiler of its own with the vocabulary indexed. All three ways walk the same
texts in the same run; ``extra_info`` has them side by side.
"""

from __future__ import annotations

import json
import threading
from statistics import median
from time import perf_counter, sleep

import pytest

from ninfer.contract import OutputConstraint
from ninfer.text import ConstraintCompiler
from support.contestants import longest_tokens
from support.vocabularies import qwen_vocabulary

pytestmark = pytest.mark.usefixtures("only_when_timed")

PERSON = """{"type":"object","additionalProperties":false,"required":["name","age","mail"],
"properties":{"name":{"type":"string"},"age":{"type":"integer","minimum":0},
"mail":{"type":"string","format":"email"},"tags":{"type":"array","items":{"type":"string"}}}}"""
OPEN = '{"type":"object","properties":{"title":{"type":"string","maxLength":255}}}'
REQUESTS = {
    "json object": (OutputConstraint.json_object(), '{"name":"Ann","scores":[1,-2.5e3],"ok":true}'),
    "closed schema": (
        OutputConstraint.json_schema(PERSON),
        '{"name":"Ann Lee","age":31,"mail":"ann@example.org","tags":["a","b"]}',
    ),
    "open schema": (OutputConstraint.json_schema(OPEN), '{"title":"A tale","year":1859,"x":[{}]}'),
    "regex": (OutputConstraint.regex("[a-zA-Z]+"), "Paris"),
    "regex of its own": (OutputConstraint.regex("v[0-9]+: [a-z ]+"), "v12: first words"),
}
ROUNDS = 3


def first_request(compiler, name):
    """Return the milliseconds of compiling and of every mask, by the wall clock."""
    constraint, text = REQUESTS[name]
    start = perf_counter()
    compiled = compiler.compile(constraint)
    times = [perf_counter() - start]
    matcher = compiler.matcher(compiled)
    mask = memoryview(bytearray(4 * matcher.mask_words)).cast("i", (1, matcher.mask_words))
    for token in longest_tokens(text.encode(), compiler.vocabulary):
        start = perf_counter()
        matcher.lookahead((), mask)
        assert matcher.preview([token]) == 1
        matcher.commit()
        times.append(perf_counter() - start)
    assert matcher.can_end
    return [1e3 * seconds for seconds in times]


def indexed():
    compiler = ConstraintCompiler(qwen_vocabulary())
    assert compiler.core
    return compiler


def cold(name):
    return first_request(indexed(), name)


def warm(name):
    compiler = indexed()
    compiler.warm_up()
    return first_request(compiler, name)


def beside(name):
    """Return a request that comes five milliseconds after the warm-up began."""
    compiler = indexed()
    thread = threading.Thread(target=compiler.warm_up)
    thread.start()
    sleep(0.005)
    times = first_request(compiler, name)
    thread.join()
    return times


@pytest.mark.parametrize("name", REQUESTS)
def test_the_first_request(benchmark, name):
    longest_tokens(b"a", qwen_vocabulary())
    found = {way.__name__: [way(name) for _ in range(ROUNDS)] for way in (cold, warm, beside)}
    benchmark.pedantic(warm, (name,), rounds=1)
    figures = {
        way: {
            "compile_ms": round(median(times[0] for times in runs), 1),
            "masks_ms": round(median(sum(times[1:]) for times in runs), 1),
            "largest_mask_ms": round(median(max(times[1:]) for times in runs), 1),
        }
        for way, runs in found.items()
    }
    benchmark.extra_info.update(figures)
    print(json.dumps({"bench": benchmark.name, **figures}))  # noqa: T201


def test_the_whole_warm_up(benchmark):
    reports = []
    benchmark.pedantic(lambda c: reports.append(c.warm_up()), setup=lambda: ((indexed(),), {}))
    report = reports[-1]
    assert not report.left_out
    benchmark.extra_info["languages"] = len(report.done)
    benchmark.extra_info["cache_megabytes"] = round(report.cache_bytes / 1e6, 1)
