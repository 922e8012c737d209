"""Random drafters in the published form: the fields and names of DFlash and DFlash2 checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from support.tiny_models import VOCAB_ROWS

ARCHITECTURES = {"dflash": "DFlashDraftModel", "dflash2": "DFlash2DraftModel"}
SLIDING, FULL = "sliding_attention", "full_attention"
_NAMES = {
    "selector.predecessor.weight": "candidate_selector.predecessor_codebook",
    "selector.successor.weight": "candidate_selector.successor_codebook",
    "selector.hidden.weight": "candidate_selector.hidden_projection.weight",
}


def published_config(own: dict[str, Any], target_layers: int = 3) -> dict[str, Any]:
    """Return what a published ``config.json`` says of a drafter of this project's own format."""
    windows = own.get("windows") or [0] * own["layers"]
    inner = {
        "target_layer_ids": own["target_layers"],
        "mask_token_id": own["mask_token"],
        "block_size": 8,
    }
    if own["drafter"] == "dflash2":
        inner |= {
            "conv_kernel_size": 2,
            "conv_group_size": own["conv_group"],
            "selector_rank": own["selector_rank"],
            "selector_top_k": 16,
        }
    return {
        "architectures": [ARCHITECTURES[own["drafter"]]],
        "model_type": "qwen3",
        "hidden_act": "silu",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "hidden_size": own["hidden"],
        "intermediate_size": own["ffn"],
        "num_hidden_layers": own["layers"],
        "num_attention_heads": own["heads"],
        "num_key_value_heads": own["kv_heads"],
        "head_dim": own["head_dim"],
        "rms_norm_eps": own["norm_eps"],
        "rope_parameters": {"rope_theta": own["rope_theta"], "rope_type": "default"},
        "max_position_embeddings": 512,
        "vocab_size": VOCAB_ROWS,
        "tie_word_embeddings": False,
        "num_target_layers": target_layers,
        "layer_types": [SLIDING if window else FULL for window in windows],
        "sliding_window": max(windows) or None,
        "use_sliding_window": any(windows),
        "max_window_layers": own["layers"],
        "is_causal": False,
        "dtype": "float32",
        "dflash_config": inner,
    }


def published_weights(own: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return a drafter's weights under their published names."""
    return {
        f"{name}_kernel" if name.endswith("_conv.base") else _NAMES.get(name, name): weight
        for name, weight in own.items()
    }


def write_published(
    folder: Path, config: dict[str, Any], weights: dict[str, torch.Tensor], shards: int = 1
) -> Path:
    """Write a published drafter's folder, in one file of weights or in several with an index."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    if shards == 1:
        save_file(weights, folder / "model.safetensors")
        return folder
    homes = {}
    for index in range(shards):
        name = f"model-{index + 1:05}-of-{shards:05}.safetensors"
        part = {key: weights[key] for key in sorted(weights)[index::shards]}
        save_file(part, folder / name)
        homes |= dict.fromkeys(part, name)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": homes}))
    return folder
