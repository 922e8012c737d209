"""Random checkpoints of the served families, small enough for every test.

The folders are ordinary Hugging Face checkpoints, so that transformers reads them too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

VOCAB_ROWS = 320
TOKEN_DOMAIN = 260
EOS = 257
SPECIAL = ("<|endoftext|>", "<|im_end|>", "<|im_start|>")
SHAPES: dict[str, dict[str, Any]] = {
    "llama": {},
    "llama3-rope": {
        "model_type": "llama",
        "rope_theta": 5000.0,
        "rope_scaling": {
            "rope_type": "llama3",
            "factor": 4.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
        },
    },
    "llama-linear-rope": {
        "model_type": "llama",
        "rope_scaling": {"rope_type": "linear", "factor": 2.0},
    },
    "llama-biased": {"model_type": "llama", "attention_bias": True, "mlp_bias": True},
    "qwen2": {"tie_word_embeddings": True},
    "qwen3": {"head_dim": 32, "num_key_value_heads": 1},
}


def tiny_config(name: str, **overrides: object) -> dict[str, Any]:
    """Return the ``config.json`` of one of ``SHAPES``."""
    config: dict[str, Any] = {
        "model_type": name,
        "hidden_act": "silu",
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "vocab_size": VOCAB_ROWS,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "attention_bias": False,
    }
    config |= SHAPES[name]
    config |= overrides
    classes = {
        "llama": "LlamaForCausalLM",
        "qwen2": "Qwen2ForCausalLM",
        "qwen3": "Qwen3ForCausalLM",
    }
    return config | {"architectures": [classes[config["model_type"]]]}


def write_checkpoint(folder: Path, name: str = "llama", seed: int = 0, **overrides: object) -> Path:
    """Write a random checkpoint with a byte-level tokenizer and return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    config = tiny_config(name, **overrides)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [EOS, 256]}))
    (folder / "tokenizer.json").write_text(byte_tokenizer().to_str())
    save_file(random_weights(config, seed), folder / "model.safetensors", {"format": "pt"})
    return folder


def byte_tokenizer() -> Tokenizer:
    """Return a tokenizer of the 256 bytes, three special ids and one plain added id."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(BPE({character: i for i, character in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in SPECIAL])
    tokenizer.add_tokens([AddedToken("<tool_call>", special=False, normalized=False)])
    return tokenizer


def random_weights(config: dict[str, Any], seed: int) -> dict[str, torch.Tensor]:
    """Return float32 weights whose logits spread well."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator) * (1.3 / shape[-1] ** 0.5)

    def near_one(width: int) -> torch.Tensor:
        return 1.0 + 0.2 * torch.randn(width, generator=generator)

    hidden, ffn, head_dim = (
        config["hidden_size"],
        config["intermediate_size"],
        config["head_dim"],
    )
    query = config["num_attention_heads"] * head_dim
    kv = config["num_key_value_heads"] * head_dim
    family = config["model_type"]
    weights = {
        "model.embed_tokens.weight": normal(config["vocab_size"], hidden),
        "model.norm.weight": near_one(hidden),
    }
    if not config["tie_word_embeddings"]:
        weights["lm_head.weight"] = normal(config["vocab_size"], hidden)
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        shapes = {
            "self_attn.q_proj": (query, hidden),
            "self_attn.k_proj": (kv, hidden),
            "self_attn.v_proj": (kv, hidden),
            "self_attn.o_proj": (hidden, query),
            "mlp.gate_proj": (ffn, hidden),
            "mlp.up_proj": (ffn, hidden),
            "mlp.down_proj": (hidden, ffn),
        }
        for name, shape in shapes.items():
            weights[f"{prefix}{name}.weight"] = normal(*shape)
            if _has_bias(config, name):
                weights[f"{prefix}{name}.bias"] = normal(shape[0])
        for name in ("input_layernorm", "post_attention_layernorm"):
            weights[f"{prefix}{name}.weight"] = near_one(hidden)
        if family == "qwen3":
            for name in ("q_norm", "k_norm"):
                weights[f"{prefix}self_attn.{name}.weight"] = near_one(head_dim)
    return weights


def _has_bias(config: dict[str, Any], name: str) -> bool:
    if name.startswith("mlp"):
        return bool(config.get("mlp_bias"))
    is_output = name.endswith("o_proj")
    return bool(config["attention_bias"]) or (config["model_type"] == "qwen2" and not is_output)
