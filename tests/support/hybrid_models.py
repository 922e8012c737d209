"""Random checkpoints of the Qwen3.5 text model, in both layouts that there are.

The folders are ordinary Hugging Face checkpoints, so that transformers reads them too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from support.tiny_models import EOS, VOCAB_ROWS, byte_tokenizer


def text_config(**overrides: object) -> dict[str, Any]:
    """Return the configuration of a tiny text model: five layers, the third and last attend."""
    kinds = ["linear_attention", "linear_attention", "full_attention"]
    config: dict[str, Any] = {
        "model_type": "qwen3_5_text",
        "architectures": ["Qwen3_5ForCausalLM"],
        "hidden_act": "silu",
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 5,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "layer_types": [*kinds, "linear_attention", "full_attention"],
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 24,
        "linear_conv_kernel_dim": 4,
        "vocab_size": VOCAB_ROWS,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-5,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10000.0,
            "partial_rotary_factor": 0.25,
            "mrope_section": [2, 1, 1],
            "mrope_interleaved": True,
        },
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mtp_num_hidden_layers": 1,
    }
    return config | overrides


def write_hybrid(
    folder: Path,
    *,
    seed: int = 0,
    nested: bool = False,
    shards: int = 1,
    dtype: torch.dtype = torch.float32,
    **overrides: object,
) -> Path:
    """Write a random checkpoint with a byte-level tokenizer and return its folder.

    With ``nested`` it has the layout of a model with a vision tower, whose tensors nobody needs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config = text_config(**overrides)
    weights = {
        name: tensor if name.endswith("A_log") else tensor.to(dtype)
        for name, tensor in random_hybrid(config, seed).items()
    }
    if nested:
        weights = {
            "model.visual.patch_embed.proj.weight": torch.zeros(1),
            **{
                name.replace("model.", "model.language_model.", 1): t for name, t in weights.items()
            },
        }
        config = {
            "model_type": "qwen3_5",
            "architectures": ["Qwen3_5ForConditionalGeneration"],
            "text_config": config,
            "tie_word_embeddings": config["tie_word_embeddings"],
        }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [EOS, 256]}))
    (folder / "tokenizer.json").write_text(byte_tokenizer().to_str())
    _save(weights, folder, shards)
    return folder


def random_hybrid(config: dict[str, Any], seed: int) -> dict[str, torch.Tensor]:
    """Return float32 weights whose logits spread well, the MTP head's included."""
    generator = torch.Generator().manual_seed(seed)
    return {name: _draw(name, shape, generator) for name, shape in _shapes(config)}


def _draw(name: str, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    drawn = torch.randn(*shape, generator=generator)
    if name.endswith("A_log"):
        return torch.empty(shape).uniform_(0.01, 8, generator=generator).log()
    if name.endswith("linear_attn.norm.weight"):
        return 1 + 0.2 * drawn
    if name.endswith("dt_bias"):
        # States that remember: where all is forgotten, a norm of almost nothing magnifies rounding.
        return 0.3 * drawn - 3
    if "norm" in name:
        return 0.3 * drawn
    if "conv1d" in name:
        return 0.6 * drawn
    return drawn * (0.8 / shape[-1] ** 0.5)


def _shapes(config: dict[str, Any]) -> Iterator[tuple[str, tuple[int, ...]]]:
    hidden = config["hidden_size"]
    yield "model.embed_tokens.weight", (config["vocab_size"], hidden)
    yield "model.norm.weight", (hidden,)
    if not config["tie_word_embeddings"]:
        yield "lm_head.weight", (config["vocab_size"], hidden)
    for layer, kind in enumerate(config["layer_types"]):
        prefix = f"model.layers.{layer}."
        yield from (
            _attention(config, prefix) if kind == "full_attention" else _delta(config, prefix)
        )
        yield from _mlp(config, prefix)
    if config["mtp_num_hidden_layers"]:
        yield "mtp.fc.weight", (hidden, 2 * hidden)
        for name in ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"):
            yield f"mtp.{name}.weight", (hidden,)
        yield from _attention(config, "mtp.layers.0.")
        yield from _mlp(config, "mtp.layers.0.")


def _attention(config: dict[str, Any], prefix: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    hidden, head_dim = config["hidden_size"], config["head_dim"]
    queries = config["num_attention_heads"] * head_dim
    keys = config["num_key_value_heads"] * head_dim
    yield prefix + "self_attn.q_proj.weight", (2 * queries, hidden)
    yield prefix + "self_attn.k_proj.weight", (keys, hidden)
    yield prefix + "self_attn.v_proj.weight", (keys, hidden)
    yield prefix + "self_attn.o_proj.weight", (hidden, queries)
    yield prefix + "self_attn.q_norm.weight", (head_dim,)
    yield prefix + "self_attn.k_norm.weight", (head_dim,)


def _delta(config: dict[str, Any], prefix: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    hidden, heads = config["hidden_size"], config["linear_num_value_heads"]
    keys = config["linear_num_key_heads"] * config["linear_key_head_dim"]
    values = heads * config["linear_value_head_dim"]
    mixer = prefix + "linear_attn."
    yield mixer + "in_proj_qkv.weight", (2 * keys + values, hidden)
    yield mixer + "in_proj_z.weight", (values, hidden)
    yield mixer + "in_proj_b.weight", (heads, hidden)
    yield mixer + "in_proj_a.weight", (heads, hidden)
    yield mixer + "conv1d.weight", (2 * keys + values, 1, config["linear_conv_kernel_dim"])
    yield mixer + "A_log", (heads,)
    yield mixer + "dt_bias", (heads,)
    yield mixer + "norm.weight", (config["linear_value_head_dim"],)
    yield mixer + "out_proj.weight", (hidden, values)


def _mlp(config: dict[str, Any], prefix: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    hidden, ffn = config["hidden_size"], config["intermediate_size"]
    yield prefix + "input_layernorm.weight", (hidden,)
    yield prefix + "post_attention_layernorm.weight", (hidden,)
    yield prefix + "mlp.gate_proj.weight", (ffn, hidden)
    yield prefix + "mlp.up_proj.weight", (ffn, hidden)
    yield prefix + "mlp.down_proj.weight", (hidden, ffn)


def _save(weights: dict[str, torch.Tensor], folder: Path, shards: int) -> None:
    if shards == 1:
        save_file(weights, folder / "model.safetensors", {"format": "pt"})
        return
    names = sorted(weights)
    homes = {}
    for shard in range(shards):
        file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        members = names[shard::shards]
        save_file({name: weights[name] for name in members}, folder / file, {"format": "pt"})
        homes.update(dict.fromkeys(members, file))
    index = json.dumps({"weight_map": homes})
    (folder / "model.safetensors.index.json").write_text(index)
