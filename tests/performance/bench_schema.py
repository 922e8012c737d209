"""Public schemas with the real vocabulary: compile with first mask, first visits, steady masks.

Run with ``--benchmark-enable`` for figures in ``extra_info``; NINFER_SLOW=1 takes 400 schemas.
"""

from __future__ import annotations

import os

import pytest

from ninfer.text import ConstraintCompiler
from support.contestants import Walks
from support.schema_costs import DATA, figures, guidance_figures, prepared, sample, walk
from support.vocabularies import qwen_vocabulary

SCHEMAS = 400 if os.environ.get("NINFER_SLOW") else 6

pytestmark = pytest.mark.skipif(not DATA.is_file(), reason="needs ../shared/data")


def test_public_schemas_from_cold_to_steady(benchmark):
    vocabulary = qwen_vocabulary()
    compiler = ConstraintCompiler(vocabulary)
    compiler.warm_up()
    cases = list(sample(SCHEMAS))
    seconds: list[float] = []
    walks = Walks()

    def run() -> None:
        for _, source, texts in cases:
            compiled, spent = prepared(compiler, source)
            if compiled is not None:
                seconds.append(spent)
                walk(compiled, texts, compiler, walks)

    benchmark.pedantic(run, rounds=1)
    benchmark.extra_info.update(figures(seconds, walks))
    assert len(seconds) > SCHEMAS // 2


@pytest.mark.slow
@pytest.mark.skipif(SCHEMAS < 100, reason="a comparison for NINFER_SLOW=1")
def test_llguidance_on_the_same_schemas(benchmark):
    pytest.importorskip("llguidance")
    cases = list(sample(SCHEMAS))
    found = benchmark.pedantic(guidance_figures, (cases, qwen_vocabulary()), rounds=1)
    benchmark.extra_info.update(found)
