"""Hybrid checkpoint folders in both layouts; every refusal names file and field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from ninfer.contract import ModelError
from ninfer.runtime.loading import load_model
from ninfer.runtime.models.decoder import Decoder
from ninfer.runtime.models.forward_batch import RowInput, forward_batch
from ninfer.runtime.models.kv_pool import SlotMap
from support.hybrid_models import random_hybrid, text_config, write_hybrid
from support.tiny_models import EOS, byte_tokenizer

TOKENS = [(7 * place) % 256 for place in range(40)]


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def logits(decoder: Decoder) -> torch.Tensor:
    pool = decoder.new_pool(1)
    batch = forward_batch([RowInput(TOKENS, 0, SlotMap([0]))], pool)
    return decoder.logits(decoder.forward(batch, pool))


def test_every_layout_is_the_same_model(tmp_path: Path) -> None:
    plain = load_model(write_hybrid(tmp_path / "plain"), dtype=torch.float32)
    nested = load_model(write_hybrid(tmp_path / "nested", nested=True), dtype=torch.float32)
    shards = load_model(write_hybrid(tmp_path / "shards", shards=3), dtype=torch.float32)
    assert plain.decoder.config.delta == nested.decoder.config.delta
    expected = logits(plain.decoder)
    assert torch.equal(logits(nested.decoder), expected)
    assert torch.equal(logits(shards.decoder), expected)
    assert nested.facts.eos_ids == (EOS, 256)
    assert nested.facts.token_domain < nested.decoder.config.vocab_rows


def test_a_folder_that_transformers_saved_is_the_same_model(tmp_path: Path) -> None:
    from transformers import GenerationConfig, Qwen3_5ForCausalLM, Qwen3_5TextConfig

    written = text_config(tie_word_embeddings=True)
    model = Qwen3_5ForCausalLM(Qwen3_5TextConfig(**written)).eval()
    drawn = random_hybrid(written, seed=8)
    model.load_state_dict(
        {k: v for k, v in drawn.items() if not k.startswith("mtp.")}, strict=False
    )
    model.generation_config = GenerationConfig(eos_token_id=[258, 257])
    folder = tmp_path / "saved"
    model.save_pretrained(folder, max_shard_size="100KB")
    (folder / "tokenizer.json").write_text(byte_tokenizer().to_str())
    assert (folder / "model.safetensors.index.json").is_file()
    loaded = load_model(folder, dtype=torch.float32)
    assert loaded.facts.eos_ids == (258, 257)
    assert loaded.decoder.config.vocab_rows == 320
    assert loaded.facts.token_domain == 260
    with torch.no_grad():
        expected = model(torch.tensor([TOKENS])).logits[0]
    torch.testing.assert_close(logits(loaded.decoder), expected, atol=1e-4, rtol=1e-4)


def test_a_model_with_a_vision_tower_serves_its_text(tmp_path: Path) -> None:
    from transformers import Qwen3_5Config, Qwen3_5ForConditionalGeneration

    vision = {"depth": 1, "hidden_size": 32, "num_heads": 2, "intermediate_size": 32}
    config = Qwen3_5Config(
        text_config=text_config(tie_word_embeddings=True),
        vision_config=vision | {"out_hidden_size": 64, "num_position_embeddings": 16},
        tie_word_embeddings=True,
    )
    torch.manual_seed(2)
    model = Qwen3_5ForConditionalGeneration(config).eval()
    folder = tmp_path / "vision"
    model.save_pretrained(folder)
    (folder / "tokenizer.json").write_text(byte_tokenizer().to_str())
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": 257}))
    loaded = load_model(folder, dtype=torch.float32)
    with torch.no_grad():
        expected = model(torch.tensor([TOKENS])).logits[0]
    torch.testing.assert_close(logits(loaded.decoder), expected, atol=1e-4, rtol=1e-4)


def test_bfloat16_stays_near_float32(tmp_path: Path) -> None:
    folder = write_hybrid(tmp_path / "half", dtype=torch.bfloat16)
    exact = logits(load_model(folder, dtype=torch.float32).decoder)
    half = load_model(folder, dtype=torch.bfloat16)
    pool = half.decoder.new_pool(1)
    assert pool.recurrent is not None
    assert pool.recurrent.states.dtype == torch.float32
    found = logits(half.decoder)
    assert torch.nn.functional.cosine_similarity(found, exact, dim=-1).min() > 0.99


def edit(path: Path, **fields: Any) -> None:
    value = json.loads(path.read_text())
    value.update(fields)
    path.write_text(json.dumps({k: v for k, v in value.items() if v is not ...}))


@pytest.mark.parametrize(
    ("fields", "fact"),
    [
        ({"linear_num_key_heads": ...}, "linear_num_key_heads: is missing"),
        ({"linear_num_key_heads": 3}, "linear_num_key_heads: 3 does not divide 4 value heads"),
        ({"linear_value_head_dim": "16"}, "linear_value_head_dim: is str, not int"),
        ({"linear_conv_kernel_dim": 1}, "linear_conv_kernel_dim: 1 is less than 2"),
        ({"layer_types": ["full_attention"]}, "layer_types: 1 kinds for 5 layers"),
        ({"layer_types": ["sliding_attention"] * 5}, "layer_types: 'sliding_attention' is not"),
        ({"layer_types": "full"}, "layer_types: is not a list of strings"),
        ({"layer_types": ..., "full_attention_interval": 0}, "full_attention_interval: 0 is less"),
        ({"attention_bias": True}, "attention_bias: True is not served"),
        ({"attn_output_gate": False}, "attn_output_gate: False is not served"),
        ({"hidden_act": "gelu"}, "hidden_act: 'gelu' is not served"),
        (
            {"rope_parameters": {"partial_rotary_factor": 2.0}},
            "rope_parameters: partial_rotary_factor: 2.0 is not above 0 and up to 1",
        ),
        (
            {"rope_parameters": {"rope_type": "yarn"}},
            "rope_parameters: rope_type: 'yarn' is not served",
        ),
    ],
)
@pytest.mark.parametrize("nested", [False, True])
def test_a_configuration_that_is_not_served_is_refused(
    tmp_path: Path, nested: bool, fields: dict[str, Any], fact: str
) -> None:
    folder = write_hybrid(tmp_path / "model", nested=nested)
    file = folder / "config.json"
    if nested:
        text = json.loads(file.read_text())["text_config"] | fields
        edit(file, text_config={k: v for k, v in text.items() if v is not ...})
    else:
        edit(file, **fields)
    place = f"{file}: text_config: " if nested else f"{file}: "
    with pytest.raises(ModelError) as caught:
        load_model(folder)
    assert str(caught.value).startswith(place + fact)


@pytest.mark.parametrize("nested", [False, True])
def test_a_tensor_of_another_shape_is_named(tmp_path: Path, nested: bool) -> None:
    folder = write_hybrid(tmp_path / "model", nested=nested)
    file = folder / "config.json"
    config = json.loads(file.read_text())
    (config["text_config"] if nested else config)["linear_value_head_dim"] = 16
    file.write_text(json.dumps(config))
    root = "model.language_model" if nested else "model"
    with pytest.raises(ModelError, match=rf"{root}\.layers\.0\.linear_attn\.conv1d\.weight: shape"):
        load_model(folder)


def test_end_ids_may_stand_in_the_text_configuration_only(tmp_path: Path) -> None:
    folder = write_hybrid(tmp_path / "model", nested=True, eos_token_id=256)
    assert load_model(folder).facts.eos_ids == (EOS, 256)
    (folder / "generation_config.json").unlink()
    assert load_model(folder).facts.eos_ids == (256,)
