"""Runs cases on an engine and keeps what it reports of them."""

from __future__ import annotations

from contextlib import ExitStack
from statistics import fmean, stdev
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from ninfer.cli.bench.grid import Case
from ninfer.cli.bench.workload import constraint_of, options_of, prompt_of
from ninfer.contract import GenerationResult

if TYPE_CHECKING:
    from ninfer.runtime import Engine


class Repetition(NamedTuple):
    """The requests of one batch; ``wall_seconds`` from the first submission to the last end."""

    wall_seconds: float
    results: tuple[GenerationResult, ...]

    @property
    def output_tokens(self) -> int:
        """Return the tokens of all answers."""
        return sum(len(result.generated_token_ids) for result in self.results)

    @property
    def prefill_tok_s(self) -> float:
        """Return prompt tokens a second; prompts are computed one after the other."""
        tokens = sum(result.computed_prefill_tokens for result in self.results)
        return _rate(tokens, sum(result.timings.prefill for result in self.results))

    @property
    def decode_tok_s(self) -> float:
        """Return later tokens of all answers a second, over the longest time of decoding."""
        return _rate(self._later_tokens, max(r.timings.decode for r in self.results))

    @property
    def decode_engine_tok_s(self) -> float:
        """Return the same over the rounds alone, without what lies between them."""
        spent = [
            r.engine_timing.decode_host + r.engine_timing.decode_device_wait for r in self.results
        ]
        return _rate(self._later_tokens, max(spent))

    @property
    def _later_tokens(self) -> int:
        return sum(max(len(result.generated_token_ids) - 1, 0) for result in self.results)


class Spread(NamedTuple):
    """Mean and standard deviation of a number over the repetitions."""

    mean: float
    deviation: float


class Measurement(NamedTuple):
    """All repetitions of one case, warm-ups left out."""

    case: Case
    repetitions: tuple[Repetition, ...]

    def spread(self, name: str) -> Spread:
        """Return the spread of one of the rates of ``Repetition``."""
        values = [getattr(repetition, name) for repetition in self.repetitions]
        return Spread(fmean(values), stdev(values) if len(values) > 1 else 0.0)

    @property
    def results(self) -> list[GenerationResult]:
        """Return the results of all repetitions."""
        return [result for repetition in self.repetitions for result in repetition.results]


def measure(
    engine: Engine, case: Case, *, repetitions: int, warm_ups: int, schema: str | None = None
) -> Measurement:
    """Run one case.

    Raises: NInferError — a request is refused or fails.
    """
    prompt = prompt_of(engine, case.test.prompt_tokens)
    options = options_of(constraint_of(case.constraint, schema), case.test.output_tokens)
    found = []
    for _ in range(warm_ups + repetitions):
        started = perf_counter()
        with ExitStack() as stack:
            handles = [stack.enter_context(engine.start(prompt, options)) for _ in range(case.rows)]
            results = tuple(handle.wait() for handle in handles)
        found.append(Repetition(perf_counter() - started, results))
    return Measurement(case, tuple(found[warm_ups:]))


def _rate(tokens: int, seconds: float) -> float:
    return tokens / seconds if seconds > 0 else 0.0
