"""One layer of a block drafter as training sees it: every block beside its sequence's context."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from drafters.target import Shape, Target, attended, join_heads, rotate, split_heads


class BlockView(NamedTuple):
    """Where blocks stand and what they see.

    Shapes: context turns of [T]; turns of [B, 1, A · P]; seen bool[B, 1, A · P, T + A · P].
    """

    context_turns: tuple[Tensor, Tensor]
    turns: tuple[Tensor, Tensor]
    seen: Tensor
    positions: int


class DynamicConv(nn.Module):
    """Two taps around a sublayer, which depend on the sublayer's normed input.

    Math: side s gives out[i, c] = (base[s, 0, c] + d[s, 0, g(c)]) x[i, c]
          + [i > 0] (base[s, 1, c] + d[s, 1, g(c)]) x[i − 1, c], within a block.
    """

    def __init__(self, hidden: int, group: int) -> None:
        super().__init__()
        self.group = group
        base = torch.zeros(2, 2, hidden)
        base[:, 0] = 1.0
        self.base = nn.Parameter(base)
        self.kernel = nn.Parameter(torch.zeros(4 * hidden // group, hidden))

    def around(
        self, normed: Tensor, positions: int, sublayer: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """Return the sublayer's output between both sides; normed [B, A · P, H]."""
        deltas = functional.linear(normed, self.kernel).unflatten(-1, (2, 2, -1))
        taps = self.base.to(normed.dtype) + deltas.repeat_interleave(self.group, dim=-1)
        inner = sublayer(_convolved(normed, taps[..., 0, :, :], positions))
        return _convolved(inner, taps[..., 1, :, :], positions)


def _convolved(x: Tensor, taps: Tensor, positions: int) -> Tensor:
    blocks = x.unflatten(1, (-1, positions))
    before = functional.pad(blocks, (0, 0, 1, 0))[:, :, :-1].flatten(1, 2)
    return taps[..., 0, :] * x + taps[..., 1, :] * before


class BlockLayer(nn.Module):
    """Attention to the context and to the whole block, then an MLP; both with residuals."""

    def __init__(self, shape: Shape, conv_group: int) -> None:
        super().__init__()
        s = shape
        self.shape = shape
        self.weights = nn.ParameterDict()
        for name, size in s.layer_matrices:
            self.weights[name] = nn.Parameter(torch.randn(size) * 0.02)
        for name, width in (
            ("input_layernorm", s.hidden),
            ("post_attention_layernorm", s.hidden),
            ("q_norm", s.head_dim),
            ("k_norm", s.head_dim),
        ):
            self.weights[name] = nn.Parameter(torch.ones(width))
        self.convs = nn.ModuleDict()
        for name in ("attention_conv", "mlp_conv") if conv_group else ():
            self.convs[name] = DynamicConv(s.hidden, conv_group)

    @torch.no_grad()
    def start_from(self, target: Target, layer: int) -> None:
        """Copy a layer of the target, which has no norms of queries and keys."""
        for ours, theirs in LAYER_NAMES.items():
            name = f"model.layers.{layer}.{theirs}"
            if ours not in ("q_norm", "k_norm"):
                self.weights[ours].copy_(target.weights[name])

    def forward(self, x: Tensor, context: Tensor, view: BlockView) -> Tensor:
        """Return the stream of all block columns; x [B, A · P, H], context [B, T, H]."""

        def attend(normed: Tensor) -> Tensor:
            return self._attention(normed, context, view)

        x = x + self._around("attention_conv", self._norm(x, "input_layernorm"), view, attend)
        normed = self._norm(x, "post_attention_layernorm")
        return x + self._around("mlp_conv", normed, view, self._mlp)

    def _around(
        self, conv: str, normed: Tensor, view: BlockView, sublayer: Callable[[Tensor], Tensor]
    ) -> Tensor:
        if conv not in self.convs:
            return sublayer(normed)
        return self.convs[conv].around(normed, view.positions, sublayer)  # type: ignore[operator]

    def _attention(self, normed: Tensor, context: Tensor, view: BlockView) -> Tensor:
        w, width = self.weights, self.shape.head_dim
        q = split_heads(functional.linear(normed, w["q_proj"]), width)
        q = rotate(self._norm(q, "q_norm"), view.turns)
        keys, values = [], []
        for source, turns in ((context, view.context_turns), (normed, view.turns)):
            k = split_heads(functional.linear(source, w["k_proj"]), width)
            keys.append(rotate(self._norm(k, "k_norm"), turns))
            values.append(split_heads(functional.linear(source, w["v_proj"]), width))
        out = attended(q, torch.cat(keys, dim=2), torch.cat(values, dim=2), view.seen)
        return functional.linear(join_heads(out), w["o_proj"])

    def _mlp(self, normed: Tensor) -> Tensor:
        w = self.weights
        gate = functional.silu(functional.linear(normed, w["gate_proj"]))
        return functional.linear(gate * functional.linear(normed, w["up_proj"]), w["down_proj"])

    def _norm(self, x: Tensor, name: str) -> Tensor:
        scale = self.weights[name].to(x.dtype)
        return functional.rms_norm(x, (x.shape[-1],), scale, self.shape.norm_eps)

    def named_tensors(self, prefix: str) -> dict[str, nn.Parameter]:
        """Return the parameters under their names in a drafter's folder."""
        named = {f"{prefix}{LAYER_NAMES[ours]}": weight for ours, weight in self.weights.items()}
        for name, conv in self.convs.items():
            named[f"{prefix}{name}.base"] = conv.base
            named[f"{prefix}{name}.kernel_projection.weight"] = conv.kernel
        return named


LAYER_NAMES = {
    "input_layernorm": "input_layernorm.weight",
    "q_proj": "self_attn.q_proj.weight",
    "k_proj": "self_attn.k_proj.weight",
    "v_proj": "self_attn.v_proj.weight",
    "q_norm": "self_attn.q_norm.weight",
    "k_norm": "self_attn.k_norm.weight",
    "o_proj": "self_attn.o_proj.weight",
    "post_attention_layernorm": "post_attention_layernorm.weight",
    "gate_proj": "mlp.gate_proj.weight",
    "up_proj": "mlp.up_proj.weight",
    "down_proj": "mlp.down_proj.weight",
}
