"""The names and row order of GGUF tensors, as Hugging Face checkpoints spell them."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

Weights = npt.NDArray[np.float32]

_OUTER = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_INNER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_BLOCK = re.compile(r"blk\.(\d+)\.([a-z_]+)\.(weight|bias)")

ROPE_FACTORS = "rope_freqs.weight"
"""The llama family's per-frequency divisors; they go into the configuration, not the weights."""


def checkpoint_name(name: str) -> str | None:
    """Return a tensor's name in a checkpoint, or None for one that is not served."""
    if name in _OUTER:
        return _OUTER[name]
    match = _BLOCK.fullmatch(name)
    if match is None or match[2] not in _INNER:
        return None
    return f"model.layers.{match[1]}.{_INNER[match[2]]}.{match[3]}"


def is_rotated(architecture: str, name: str) -> bool:
    """Return whether a tensor's rows stand in the order of adjacent rotation pairs."""
    return architecture == "llama" and re.search(r"\.attn_[qk]\.(weight|bias)$", name) is not None


def halves_from_pairs(rows: Weights, heads: int) -> Weights:
    """Return query or key rows reordered for rotation of half against half.

    Math:   out[h, s, j] = rows[h, j, s] for pair member s in {0, 1} and frequency j.
    Shapes: rows float32[heads · head_dim, ...].
    """
    rest = rows.shape[1:]
    paired = rows.reshape(heads, -1, 2, *rest)
    return np.ascontiguousarray(paired.swapaxes(1, 2)).reshape(rows.shape)
