"""Random drafters for tiny targets, written as the folders that users name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

SHAPE: dict[str, Any] = {
    "target": "tiny",
    "hidden": 64,
    "heads": 4,
    "kv_heads": 2,
    "head_dim": 16,
    "ffn": 48,
    "norm_eps": 1e-5,
    "rope_theta": 10000.0,
}
MTP_KINDS: dict[str, dict[str, Any]] = {
    "plain": {"norm_offset": 0, "qk_norm": False, "gated_attention": False},
    "qwen": {"norm_offset": 1, "qk_norm": True, "gated_attention": True, "rotary_dim": 8},
}
BLOCK_KINDS: dict[str, dict[str, Any]] = {
    "dflash": {"layers": 2, "target_layers": [0, 2], "mask_token": 256},
    "dflash2": {
        "layers": 2,
        "target_layers": [0, 1, 2],
        "mask_token": 256,
        "conv_group": 16,
        "selector_rank": 8,
    },
}


class Random:
    """Draws weights that spread well from one seed."""

    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int, gain: float = 1.3) -> torch.Tensor:
        return torch.randn(*shape, generator=self._generator) * (gain / shape[-1] ** 0.5)

    def scale(self, width: int, centre: float = 1.0) -> torch.Tensor:
        return centre + 0.2 * torch.randn(width, generator=self._generator)


def mtp_config(kind: str = "plain", **overrides: object) -> dict[str, Any]:
    """Return the ``config.json`` of a random MTP drafter."""
    return {"drafter": "mtp"} | SHAPE | MTP_KINDS[kind] | overrides


def block_config(kind: str, **overrides: object) -> dict[str, Any]:
    """Return the ``config.json`` of a random DFlash or DFlash2 drafter."""
    return {"drafter": kind} | SHAPE | BLOCK_KINDS[kind] | overrides


def write_drafter(
    folder: Path,
    config: dict[str, Any],
    weights: dict[str, torch.Tensor] | None = None,
    *,
    seed: int = 0,
    vocab_rows: int = 320,
) -> Path:
    """Write a drafter's folder and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    if weights is None:
        weights = random_weights(config, seed, vocab_rows)
    save_file(weights, folder / "model.safetensors")
    return folder


def random_weights(config: dict[str, Any], seed: int, vocab_rows: int) -> dict[str, torch.Tensor]:
    """Return the float32 weights of a drafter."""
    random = Random(seed)
    if config["drafter"] == "mtp":
        return _mtp_weights(config, random)
    return _block_weights(config, random, vocab_rows)


def quantised(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return matrices as int8 with one scale a row, and everything else as it is."""
    stored = {}
    for name, weight in weights.items():
        if weight.dim() != 2:
            stored[name] = weight
            continue
        scale = weight.abs().amax(1) / 127
        stored[name] = (weight / scale[:, None]).round().to(torch.int8)
        stored[name + ".scale"] = scale
    return stored


def _layer_weights(config: dict[str, Any], random: Random, prefix: str) -> dict[str, torch.Tensor]:
    hidden, ffn, head_dim = config["hidden"], config["ffn"], config["head_dim"]
    query, kv = config["heads"] * head_dim, config["kv_heads"] * head_dim
    centre = 0.0 if config.get("norm_offset") else 1.0
    gates = 2 if config.get("gated_attention") else 1
    weights = {
        "input_layernorm": random.scale(hidden, centre),
        "post_attention_layernorm": random.scale(hidden, centre),
        "self_attn.q_proj": random.normal(gates * query, hidden),
        "self_attn.k_proj": random.normal(kv, hidden),
        "self_attn.v_proj": random.normal(kv, hidden),
        "self_attn.o_proj": random.normal(hidden, query),
        "mlp.gate_proj": random.normal(ffn, hidden),
        "mlp.up_proj": random.normal(ffn, hidden),
        "mlp.down_proj": random.normal(hidden, ffn),
    }
    if config.get("qk_norm", True):
        weights["self_attn.q_norm"] = random.scale(head_dim, centre)
        weights["self_attn.k_norm"] = random.scale(head_dim, centre)
    return {f"{prefix}{name}.weight": weight for name, weight in weights.items()}


def _mtp_weights(config: dict[str, Any], random: Random) -> dict[str, torch.Tensor]:
    hidden = config["hidden"]
    centre = 0.0 if config["norm_offset"] else 1.0
    norms = ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm")
    weights = {f"mtp.{name}.weight": random.scale(hidden, centre) for name in norms}
    weights["mtp.fc.weight"] = random.normal(hidden, 2 * hidden)
    return weights | _layer_weights(config, random, "mtp.layers.0.")


def _block_weights(
    config: dict[str, Any], random: Random, vocab_rows: int
) -> dict[str, torch.Tensor]:
    hidden = config["hidden"]
    weights = {
        "fc.weight": random.normal(hidden, hidden * len(config["target_layers"])),
        "hidden_norm.weight": random.scale(hidden),
        "norm.weight": random.scale(hidden),
    }
    for layer in range(config["layers"]):
        weights |= _layer_weights(config, random, f"layers.{layer}.")
        if config["drafter"] == "dflash2":
            weights |= _conv_weights(config, random, f"layers.{layer}.")
    if config["drafter"] == "dflash2":
        rank = config["selector_rank"]
        weights["selector.predecessor.weight"] = random.normal(vocab_rows, rank, gain=2.0)
        weights["selector.successor.weight"] = random.normal(vocab_rows, rank, gain=2.0)
        weights["selector.hidden.weight"] = random.normal(rank, hidden)
    return weights


def _conv_weights(config: dict[str, Any], random: Random, prefix: str) -> dict[str, torch.Tensor]:
    hidden = config["hidden"]
    groups = hidden // config["conv_group"]
    weights = {}
    for sublayer in ("attention_conv", "mlp_conv"):
        name = prefix + sublayer
        weights[f"{name}.base"] = random.scale(2 * 2 * hidden, 0.5).view(2, 2, hidden)
        weights[f"{name}.kernel_projection.weight"] = random.normal(
            2 * 2 * groups, hidden, gain=0.3
        )
    return weights
