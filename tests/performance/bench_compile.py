"""Preparing a constraint: the index, a new language, one whose rules are known, a hit."""

from __future__ import annotations

from itertools import count

import pytest

from ninfer.contract import CacheOutcome, OutputConstraint
from ninfer.text import ConstraintCompiler, GrammarCore
from support.vocabularies import qwen_vocabulary

SCHEMA = """{"type": "object", "additionalProperties": false, "required": ["KEY", "age"],
"properties": {"KEY": {"type": "string"}, "age": {"type": "integer", "minimum": 0, "maximum": 150},
"tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}}}}"""

KINDS = {
    "grammar": lambda word: OutputConstraint.grammar(f'root ::= "{word}" [0-9]+ ("," [0-9]+)*'),
    "json schema": lambda word: OutputConstraint.json_schema(SCHEMA.replace("KEY", word)),
    "choice": lambda word: OutputConstraint.choice([f"{word} {n}" for n in range(100)]),
    "regex": lambda word: OutputConstraint.regex(f"{word}-[0-9]{{4}}-[a-f]{{1,16}}"),
}


def test_indexing_the_vocabulary(benchmark):
    vocabulary = qwen_vocabulary()
    benchmark.pedantic(GrammarCore, (vocabulary,), rounds=3)


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_language_of_a_compiler(benchmark, kind):
    def fresh():
        compiler = ConstraintCompiler(qwen_vocabulary())
        assert compiler.core
        return (compiler,), {}

    compiled = benchmark.pedantic(
        lambda compiler: compiler.compile(KINDS[kind]("first")), setup=fresh, rounds=3
    )
    assert compiled.cache is CacheOutcome.BUILT


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_language_after_its_like(benchmark, kind):
    compiler = ConstraintCompiler(qwen_vocabulary())
    compiler.compile(KINDS[kind]("before"))
    words = (f"word{number}" for number in count())
    compiled = benchmark.pedantic(lambda: compiler.compile(KINDS[kind](next(words))), rounds=20)
    assert compiled.cache is CacheOutcome.BUILT


@pytest.mark.parametrize("kind", KINDS)
def test_a_known_language(benchmark, kind):
    compiler = ConstraintCompiler(qwen_vocabulary())
    constraint = KINDS[kind]("known")
    compiler.compile(constraint)
    assert benchmark(compiler.compile, constraint).cache is CacheOutcome.HIT
