"""The target as training sees it: whole sequences at once, and wide batches that write text.

Reads a Llama-shaped Hugging Face folder. Frozen: nothing here has gradients.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True, slots=True)
class Shape:
    """What the drafter shares with its target."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    norm_eps: float
    rope_theta: float

    @property
    def layer_matrices(self) -> tuple[tuple[str, tuple[int, int]], ...]:
        """Return the matrices of a dense layer with their shapes."""
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return (
            ("q_proj", (queries, self.hidden)),
            ("k_proj", (keys, self.hidden)),
            ("v_proj", (keys, self.hidden)),
            ("o_proj", (self.hidden, queries)),
            ("gate_proj", (self.ffn, self.hidden)),
            ("up_proj", (self.ffn, self.hidden)),
            ("down_proj", (self.hidden, self.ffn)),
        )


class Target:
    """A dense decoder without biases.

    Shapes: token ids int64[B, T]; hidden states after the final norm [B, T, hidden].
    """

    def __init__(self, folder: Path, device: torch.device, dtype: torch.dtype) -> None:
        config = json.loads((folder / "config.json").read_text())
        heads = config["num_attention_heads"]
        self.shape = Shape(
            config["hidden_size"],
            config["num_hidden_layers"],
            heads,
            config["num_key_value_heads"],
            config.get("head_dim", config["hidden_size"] // heads),
            config["intermediate_size"],
            config["vocab_size"],
            config["rms_norm_eps"],
            config["rope_theta"],
        )
        raw = load_file(str(folder / "model.safetensors"))
        self.weights = {name: tensor.to(device, dtype) for name, tensor in raw.items()}
        self.embedding = self.weights["model.embed_tokens.weight"]
        self.head = self.weights.get("lm_head.weight", self.embedding)
        self.device, self.dtype = device, dtype
        self._qkv = [
            self._joined(layer, "self_attn", ("q_proj", "k_proj", "v_proj"))
            for layer in range(self.shape.layers)
        ]
        self._gate_up = [
            self._joined(layer, "mlp", ("gate_proj", "up_proj"))
            for layer in range(self.shape.layers)
        ]

    def hidden(self, tokens: Tensor) -> Tensor:
        """Return the hidden states of whole sequences."""
        return self.states(tokens, ())[0]

    @torch.no_grad()
    def states(self, tokens: Tensor, taps: Sequence[int]) -> tuple[Tensor, Tensor | None]:
        """Return hidden states, and the streams after the layers ``taps`` side by side.

        Shapes: streams [B, T, len(taps) · hidden]; None without taps.
        """
        positions = torch.arange(tokens.shape[1], device=self.device)
        turns = rotation(self.shape, positions, self.dtype)
        x = self.embedding[tokens]
        streams = []
        for layer in range(self.shape.layers):
            q, k, v = self.projections(layer, x, turns)
            attended = functional.scaled_dot_product_attention(
                q, k, v, is_causal=True, enable_gqa=True
            )
            x = self.after_attention(layer, x, attended)
            if layer in taps:
                streams.append(x)
        hidden = self.normed(x, "model.norm.weight")
        return hidden, torch.cat(streams, dim=-1) if streams else None

    def projections(
        self, layer: int, x: Tensor, turns: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return rotated queries and keys, and values, each [B, heads, T, head_dim]."""
        s = self.shape
        normed = self.normed(x, f"model.layers.{layer}.input_layernorm.weight")
        joined = split_heads(functional.linear(normed, self._qkv[layer]), s.head_dim)
        turned = rotate(joined[:, : s.heads + s.kv_heads], turns)
        return turned[:, : s.heads], turned[:, s.heads :], joined[:, s.heads + s.kv_heads :]

    def after_attention(self, layer: int, x: Tensor, attended: Tensor) -> Tensor:
        """Return the residual stream after one layer's attention output and MLP."""
        prefix, w = f"model.layers.{layer}.", self.weights
        x = x + functional.linear(join_heads(attended), w[prefix + "self_attn.o_proj.weight"])
        normed = self.normed(x, prefix + "post_attention_layernorm.weight")
        gate, up = functional.linear(normed, self._gate_up[layer]).chunk(2, dim=-1)
        return x + functional.linear(functional.silu(gate) * up, w[prefix + "mlp.down_proj.weight"])

    def normed(self, x: Tensor, name: str) -> Tensor:
        """Return a norm's output."""
        return functional.rms_norm(x, (x.shape[-1],), self.weights[name], self.shape.norm_eps)

    def _joined(self, layer: int, part: str, names: Sequence[str]) -> Tensor:
        prefix = f"model.layers.{layer}.{part}."
        return torch.cat([self.weights[f"{prefix}{name}.weight"] for name in names])


def rotation(shape: Shape, positions: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return cosines and sines [..., head_dim] of positions [...]."""
    exponents = torch.arange(0, shape.head_dim, 2, device=positions.device) / shape.head_dim
    angles = positions[..., None].float() / shape.rope_theta**exponents
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos().to(dtype), angles.sin().to(dtype)


def rotate(x: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
    """Return heads [B, H, T, head_dim] turned half against half."""
    low, high = x.chunk(2, dim=-1)
    return x * turns[0] + torch.cat((-high, low), dim=-1) * turns[1]


def split_heads(x: Tensor, head_dim: int) -> Tensor:
    """Return [B, T, H·head_dim] as [B, H, T, head_dim]."""
    return x.unflatten(-1, (-1, head_dim)).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """Return [B, H, T, head_dim] as [B, T, H·head_dim]."""
    return x.transpose(1, 2).flatten(2)


def attended(q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
    """Return what queries attend to under a mask, each key head serving a group of query heads.

    Shapes: q [B, H, Q, head_dim]; k, v [B, H', S, head_dim]; seen bool, broadcast to [B, H, Q, S].
    """
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)
