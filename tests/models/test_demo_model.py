"""The embedded model: same tokens and logits as transformers, sensible answers, quick starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer

from ninfer.runtime.loading import LoadedModel, load_model
from ninfer.runtime.loading.cache import cache_folder, content_digest
from ninfer.runtime.models.forward_batch import RowInput, forward_batch
from ninfer.runtime.models.kv_pool import SlotMap
from support.program_runs import continue_rows, open_row, program, start

TEXTS = [
    "What is the capital of France?",
    "def f(x):\n    return x  * 42 + 1234567",
    "naïve café — 天気 🙂\tΩ  \r\n\n end ",
    "<|im_start|>user\nHi<|im_end|>\n",
]
QUESTION = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    torch.set_num_threads(1)
    return load_model(dtype=torch.float32)


@pytest.fixture(scope="module")
def tokenizer(model: LoadedModel) -> Tokenizer:
    return Tokenizer.from_str(model.facts.tokenizer_json)


@pytest.fixture(scope="module")
def folder(model: LoadedModel) -> Path:
    """Return the conversion, which is an ordinary checkpoint folder."""
    digest = content_digest(model.path, cache_folder())
    (found,) = (cache_folder() / "models").glob(f"*-{digest}")
    return found


@pytest.fixture(scope="module")
def oracle(folder: Path) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def test_text_becomes_the_tokens_that_transformers_makes(
    model: LoadedModel, tokenizer: Tokenizer
) -> None:
    from transformers.integrations.gguf import convert_gguf_tokenizer, get_gguf_tokenizer

    architecture, fields, _ = get_gguf_tokenizer(str(model.path))
    expected, _ = convert_gguf_tokenizer(architecture, fields)
    for text in TEXTS:
        assert tokenizer.encode(text, add_special_tokens=False).ids == (
            expected.encode(text, add_special_tokens=False).ids
        )


def test_logits_equal_those_of_transformers(
    model: LoadedModel, tokenizer: Tokenizer, oracle: Any
) -> None:
    pool = model.decoder.new_pool(2)
    ids = tokenizer.encode(QUESTION + "The capital of France is Paris, a city on the Seine.").ids
    batch = forward_batch([RowInput(ids, 0, SlotMap([0, 1]))], pool)
    found = model.decoder.logits(model.decoder.forward(batch, pool))
    with torch.no_grad():
        expected = oracle(torch.tensor([ids])).logits[0]
    assert torch.equal(found.argmax(-1), expected.argmax(-1))
    torch.testing.assert_close(found, expected, atol=2e-3, rtol=1e-4)


def test_greedy_text_equals_that_of_transformers(
    model: LoadedModel, tokenizer: Tokenizer, oracle: Any
) -> None:
    ids = tokenizer.encode(QUESTION).ids
    owner = program(model, max_concurrency=1)
    row = open_row(owner, ids)
    answer = start(owner, row) + continue_rows(owner, [row], 15)[0]
    generated = oracle.generate(
        torch.tensor([ids]),
        attention_mask=torch.ones(1, len(ids), dtype=torch.int64),
        max_new_tokens=16,
        min_new_tokens=16,
        do_sample=False,
        eos_token_id=49151,
        pad_token_id=2,
    )
    assert generated[0, len(ids) :].tolist() == answer
    assert "Paris" in tokenizer.decode(answer)


def test_the_answer_in_bfloat16_is_the_same(tokenizer: Tokenizer) -> None:
    owner = program(load_model(dtype=torch.bfloat16), max_concurrency=2)
    rows = [open_row(owner, tokenizer.encode(QUESTION).ids) for _ in range(2)]
    answers = [start(owner, row) for row in rows]
    for answer, rest in zip(answers, continue_rows(owner, rows, 7), strict=True):
        assert tokenizer.decode(answer + rest).startswith("The capital of France is Paris.")


def test_facts_of_the_embedded_model(model: LoadedModel, tokenizer: Tokenizer) -> None:
    facts = model.facts
    assert facts.token_domain == tokenizer.get_vocab_size() == 49152
    assert facts.eos_ids == (2, 0)
    assert facts.control_ids == tuple(range(17))
    assert facts.chat_template is not None
    assert "<|im_start|>" in facts.chat_template
    assert (facts.bos_token, facts.eos_token) == ("<|im_start|>", "<|im_end|>")
