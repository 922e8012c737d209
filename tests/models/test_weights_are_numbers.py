"""Tensors that are no weights are refused by name; formats and ties are read as they are meant."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from ninfer.contract import ModelError
from ninfer.runtime.loading import load_model
from ninfer.runtime.models.forward_batch import RowInput, forward_batch
from ninfer.runtime.models.kv_pool import SlotMap
from support.hybrid_models import write_hybrid
from support.tiny_models import write_checkpoint

MATRIX = "model.layers.1.self_attn.v_proj.weight"
NORM = "model.layers.2.post_attention_layernorm.weight"
TOKENS = list(range(20))


def put(folder: Path, name: str, tensor: torch.Tensor) -> None:
    file = folder / "model.safetensors"
    save_file(load_file(file) | {name: tensor}, file, {"format": "pt"})


def logits(folder: Path) -> torch.Tensor:
    decoder = load_model(folder, dtype=torch.float32).decoder
    pool = decoder.new_pool(2)
    batch = forward_batch([RowInput(TOKENS, 0, SlotMap([0, 1]))], pool)
    return decoder.logits(decoder.forward(batch, pool))


@pytest.mark.parametrize(
    "dtype",
    [torch.int8, torch.uint8, torch.int32, torch.bool, torch.float8_e4m3fn, torch.complex64],
    ids=str,
)
@pytest.mark.parametrize("name", [MATRIX, NORM])
def test_a_format_that_is_no_weights_is_named(
    tmp_path: Path, name: str, dtype: torch.dtype
) -> None:
    folder = write_checkpoint(tmp_path / "model")
    shape = load_file(folder / "model.safetensors")[name].shape
    put(folder, name, torch.ones(shape).to(dtype))
    with pytest.raises(ModelError) as caught:
        load_model(folder)
    assert str(caught.value) == f"{folder}: {name}: {dtype} is not served"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e300])
@pytest.mark.parametrize("name", [MATRIX, NORM, "lm_head.weight", "model.embed_tokens.weight"])
def test_one_number_that_is_not_finite_is_found(tmp_path: Path, name: str, value: float) -> None:
    folder = write_checkpoint(tmp_path / "model")
    tensor = load_file(folder / "model.safetensors")[name].double()
    tensor.view(-1)[-1] = value
    put(folder, name, tensor)
    with pytest.raises(ModelError, match=f"model: {name}: has numbers that are not finite in"):
        load_model(folder)


def test_large_numbers_are_finite(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "model")
    put(folder, NORM, torch.full((64,), 3e38))
    load_model(folder, dtype=torch.float32)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_every_float_is_read_as_transformers_reads_it(tmp_path: Path, dtype: torch.dtype) -> None:
    folder = write_checkpoint(tmp_path / "model")
    file = folder / "model.safetensors"
    save_file({k: v.to(dtype) for k, v in load_file(file).items()}, file, {"format": "pt"})
    assert_as_transformers(folder)


@pytest.mark.parametrize("nested", [False, True])
def test_a_tied_hybrid_with_a_head_of_its_own_uses_it(tmp_path: Path, nested: bool) -> None:
    folder = write_hybrid(tmp_path / "untied", nested=nested)
    tied = write_hybrid(tmp_path / "tied", nested=nested, tie_word_embeddings=True)
    put(tied, "lm_head.weight", load_file(folder / "model.safetensors")["lm_head.weight"])
    first, second = (load_model(f, dtype=torch.float32).decoder for f in (folder, tied))
    hidden = torch.randn(3, 64, generator=torch.Generator().manual_seed(0))
    assert torch.equal(first.logits(hidden), second.logits(hidden))


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_a_tied_model_with_a_head_of_its_own_is_what_transformers_makes_of_it(
    tmp_path: Path, family: str
) -> None:
    folder = write_checkpoint(tmp_path / "model", family, tie_word_embeddings=True)
    own = torch.randn(320, 64, generator=torch.Generator().manual_seed(1)) * 0.1
    put(folder, "lm_head.weight", own)
    assert_as_transformers(folder)


def assert_as_transformers(folder: Path) -> None:
    oracle = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.no_grad():
        expected = oracle(torch.tensor([TOKENS])).logits[0]
    found = logits(folder)
    assert (found - expected[-len(found) :]).abs().max() < 1e-4
