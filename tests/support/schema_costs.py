"""What public schemas cost with the real vocabulary: compile, first visits, steady masks."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from time import thread_time
from typing import Any

from ninfer.contract import OutputConstraint, RequestError, UnknownKeywords, mask_words
from ninfer.text import Compiled, ConstraintCompiler, Matcher
from ninfer.text.schema.reduction import Reduction
from ninfer.text.schema.source import read_schema
from support.contestants import Walks, guidance, longest_tokens, micros
from support.schema_forms import Forms

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "maskbench-dev.jsonl.gz"
ANNOTATE = UnknownKeywords.ANNOTATE


def sample(schemas: int, seed: int = 5) -> Iterator[tuple[str, str, list[str]]]:
    """Yield names, sources and texts in the generated form of schemas with a valid instance."""
    cases = [json.loads(line) for line in gzip.open(DATA, "rt")]
    random.Random(seed).shuffle(cases)
    found = 0
    for case in cases:
        source = json.dumps(case["schema"], ensure_ascii=False)
        valid = [test["data"] for test in case["tests"] if test["valid"]]
        if found == schemas:
            continue
        try:
            forms = Forms(Reduction(read_schema(source, ANNOTATE)))
            texts = [forms.texts(value)[0] for value in valid]
        except RequestError:
            continue
        found += 1
        yield case["id"], source, texts


def prepared(compiler: ConstraintCompiler, source: str) -> tuple[Compiled | None, float]:
    """Compile a schema, first mask included; return it with its seconds."""
    start = thread_time()
    try:
        compiled = compiler.compile(OutputConstraint.json_schema(source, ANNOTATE))
    except RequestError:
        return None, thread_time() - start
    return compiled, thread_time() - start


def walk(compiled: Compiled, texts: list[str], compiler: ConstraintCompiler, walks: Walks) -> None:
    """Fill every mask along the texts, twice."""
    vocabulary = compiler.vocabulary
    words = mask_words(vocabulary.token_domain)
    mask = memoryview(bytearray(4 * words)).cast("i", (1, words))
    for times in (walks.first, walks.steady):
        for text in texts:
            matcher: Matcher = compiler.matcher(compiled)
            for token in longest_tokens(text.encode(), vocabulary):
                start = thread_time()
                matcher.lookahead((), mask)
                times.append(thread_time() - start)
                if matcher.preview([token]) != 1:
                    matcher.discard()
                    break
                matcher.commit()


def figures(compile_seconds: list[float], walks: Walks) -> dict[str, Any]:
    """Return the figures of a run: milliseconds to compile, microseconds a mask."""
    over = [t for t in walks.first if t > 5e-3]
    return {
        "schemas": len(compile_seconds),
        "masks": len(walks.first),
        "compile_p50_ms": round(micros(compile_seconds, 0.5) / 1e3, 2),
        "compile_p99_ms": round(micros(compile_seconds, 0.99) / 1e3, 2),
        "first_p50_us": micros(walks.first, 0.5),
        "first_p99_us": micros(walks.first, 0.99),
        "first_max_us": micros(walks.first, 1),
        "first_over_5_ms": len(over),
        "steady_p50_us": micros(walks.steady, 0.5),
        "steady_p99_us": micros(walks.steady, 0.99),
        "steady_max_us": micros(walks.steady, 1),
    }


def guidance_figures(cases: list[tuple[str, str, list[str]]], vocabulary: Any) -> dict[str, Any]:
    """Return llguidance's figures on the same texts."""
    seconds, total = [], Walks()
    for _, source, texts in cases:
        found = guidance(
            vocabulary,
            lambda matcher, text=source: matcher.grammar_from_json_schema(
                text, defaults={"whitespace_flexible": False}
            ),
            [text.encode() for text in texts],
        )
        if not found.refusal:
            seconds.append(found.compile_seconds)
            total.first += found.first
            total.steady += found.steady
    return figures(seconds, total)
