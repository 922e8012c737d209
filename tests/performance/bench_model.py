"""What the embedded model costs: rounds at 1, 4 and 8 rows, a prompt, a warm load, and a mask.

Tokens per second stand in ``extra_info``. Bar: a constrained row adds at most 10 % to the CPU time
of a token (steady states of the grammar, one thread, all rows constrained).
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch

from ninfer.contract import (
    CommitDecision,
    EngineOptions,
    Lookahead,
    MaskProvider,
    OutputConstraint,
    SamplingParameters,
)
from ninfer.qwen_frontend.frontend import Frontend
from ninfer.runtime.loading import LoadedModel, load_model
from ninfer.runtime.program import TorchProgram
from ninfer.text import Matcher, lookahead_batch
from support.program_runs import open_row, prompt, start

MASK_BAR = 0.10
SCHEMA = """{"type":"array","minItems":500,"items":{"type":"object","properties":{
"name":{"type":"string"},"age":{"type":"integer"},"city":{"enum":["Berlin","Tokyo","Paris"]}},
"required":["name","age","city"],"additionalProperties":false}}"""


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return load_model()


@pytest.fixture(autouse=True)
def threads(benchmark: Any) -> Iterator[None]:
    """Give a measurement every core, and a mere check one: idle threads spin on a shared box."""
    torch.set_num_threads((os.cpu_count() or 1) if benchmark.enabled else 1)
    yield
    torch.set_num_threads(1)


class MatcherMasks:
    """Implements contract.MaskProvider over one native matcher per row."""

    def __init__(self, matchers: Sequence[Matcher]) -> None:
        self.matchers = matchers

    def is_constrained(self, row: int) -> bool:
        return True

    def fill(
        self, drafts: Sequence[Sequence[int]], masks: memoryview
    ) -> Sequence[Lookahead | None]:
        return lookahead_batch(self.matchers, drafts, masks)

    def uploaded(self, row: int, byte_count: int) -> None:
        return None


class Rounds:
    """Rows that are decoded for as long as the bench asks; matchers follow the answers."""

    def __init__(self, model: LoadedModel, rows: int, matchers: Sequence[Matcher] = ()) -> None:
        self.owner = TorchProgram(model, EngineOptions(max_concurrency=rows, max_context=2048))
        self.matchers = matchers
        self.masks: MaskProvider | None = MatcherMasks(matchers) if matchers else None
        sampling = SamplingParameters(temperature=0.8, top_p=0.95)
        self.rows = [open_row(self.owner, prompt(64, i), sampling) for i in range(rows)]
        for index, row in enumerate(self.rows):
            first = MatcherMasks(matchers[index : index + 1]) if matchers else None
            self._advance(index, start(self.owner, row, first))

    def round(self) -> None:
        batch = self.owner.decode(self.rows, [1000] * len(self.rows), self.masks)
        for index, row in enumerate(batch.rows):
            self._advance(index, row.tokens)
        self.owner.commit(batch, [CommitDecision(1)] * len(self.rows))

    def _advance(self, index: int, tokens: Sequence[int]) -> None:
        if self.matchers:
            assert self.matchers[index].preview(tokens) == len(tokens)
            self.matchers[index].commit()


@pytest.mark.parametrize("rows", [1, 4, 8])
def test_rounds_at_each_batch(benchmark: Any, model: LoadedModel, rows: int) -> None:
    rounds = Rounds(model, rows)
    benchmark.pedantic(rounds.round, rounds=20, warmup_rounds=3 if benchmark.enabled else 0)
    if benchmark.stats is not None:
        benchmark.extra_info["tokens_per_second"] = rows / benchmark.stats.stats.median


@pytest.mark.parametrize("tokens", [128, 512])
def test_a_prompt(benchmark: Any, model: LoadedModel, tokens: int) -> None:
    owner = TorchProgram(model, EngineOptions(max_context=2048, prefill_chunk=1024))

    def run() -> None:
        row = open_row(owner, prompt(tokens, 1))
        start(owner, row)
        owner.release(row)

    benchmark.pedantic(run, rounds=3, warmup_rounds=1)
    if benchmark.stats is not None:
        benchmark.extra_info["tokens_per_second"] = tokens / benchmark.stats.stats.median


def test_a_warm_load(benchmark: Any, model: LoadedModel) -> None:
    benchmark.pedantic(load_model, rounds=3)


@pytest.mark.parametrize("rows", [1, 8])
def test_a_constrained_round_stays_within_its_bar(
    benchmark: Any, model: LoadedModel, rows: int
) -> None:
    frontend = Frontend(model.facts)
    compiled = frontend.compiler.compile(OutputConstraint.json_schema(SCHEMA))
    matchers = [frontend.compiler.matcher(compiled) for _ in range(rows)]
    torch.set_num_threads(1)
    free, constrained = Rounds(model, rows), Rounds(model, rows, matchers)
    count = 40 if benchmark.enabled else 1
    for _ in range(2 * count):
        constrained.round()
    # Interleaved, so that a change of clock or load meets both alike.
    pairs = [(_cpu(free.round), _cpu(constrained.round)) for _ in range(count)]
    benchmark.pedantic(constrained.round, rounds=1)
    plain, masked = (statistics.median(side) for side in zip(*pairs, strict=True))
    benchmark.extra_info["added_share"] = masked / plain - 1
    if benchmark.enabled:
        assert masked <= (1 + MASK_BAR) * plain


def _cpu(action: Any) -> float:
    started = time.process_time()
    action()
    return time.process_time() - started
