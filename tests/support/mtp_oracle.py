"""The MTP formulas over whole texts, without caches, pages or batches; shares no product code.

Source: reference contract, section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


def rms(x: Tensor, scale: Tensor, eps: float) -> Tensor:
    """Return x over its root mean square, scaled."""
    return x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt() * scale


def turn(x: Tensor, positions: Tensor, theta: float, width: int) -> Tensor:
    """Return heads [n, heads, head_dim] with their first ``width`` numbers rotated in halves."""
    half = width // 2
    rates = theta ** (-torch.arange(half, dtype=torch.float64) * 2 / width)
    angles = positions.double()[:, None, None] * rates
    cosines, sines = angles.cos().float(), angles.sin().float()
    a, b, rest = x[..., :half], x[..., half:width], x[..., width:]
    return torch.cat((a * cosines - b * sines, b * cosines + a * sines, rest), dim=-1)


def attention(q: Tensor, k: Tensor, v: Tensor, visible: Tensor) -> Tensor:
    """Return softmax attention [n, heads · head_dim] of grouped heads; visible bool[n, m]."""
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    scores = torch.einsum("qhd,khd->hqk", q, k) / q.shape[-1] ** 0.5
    weights = scores.masked_fill(~visible, -torch.inf).softmax(-1)
    return torch.einsum("hqk,khd->qhd", weights, v).flatten(1)


@dataclass(frozen=True)
class MtpOracle:
    """One drafter's weights beside its target's embedding and head."""

    config: dict[str, Any]
    weights: dict[str, Tensor]
    embedding: Tensor
    head: Tensor

    def drafts(
        self, tokens: Sequence[int], hidden: Tensor, count: int, ids: Sequence[int]
    ) -> list[int]:
        """Return the drafts after a text whose last token, the anchor, has no hidden state yet.

        Only ``ids`` can be proposed.

        Shapes: hidden float32[len(tokens) − 1, width], after the target's final norm.
        """
        following, states = list(tokens[1:]), hidden
        drafts: list[int] = []
        while len(drafts) < count:
            m = self._states(following, states)[-1]
            drafts.append(ids[int((self.head[list(ids)] @ m).argmax())])
            following.append(drafts[-1])
            states = torch.cat((states, m[None]))
        return drafts

    def _states(self, following: Sequence[int], hidden: Tensor) -> Tensor:
        c = self.config
        embedded = self._norm("pre_fc_norm_embedding", self.embedding[list(following)])
        joined = torch.cat((embedded, self._norm("pre_fc_norm_hidden", hidden)), dim=-1)
        x = joined @ self._w("fc").T
        layer = "layers.0."
        n = self._norm(layer + "input_layernorm", x)
        heads, width = c["heads"], c["head_dim"]
        q = (n @ self._w(layer + "self_attn.q_proj").T).view(len(n), heads, -1)
        gate = q[..., width:].flatten(1)
        k = (n @ self._w(layer + "self_attn.k_proj").T).view(len(n), -1, width)
        v = (n @ self._w(layer + "self_attn.v_proj").T).view(len(n), -1, width)
        q = q[..., :width]
        if c["qk_norm"]:
            q = self._norm(layer + "self_attn.q_norm", q)
            k = self._norm(layer + "self_attn.k_norm", k)
        place, turned = torch.arange(len(n)), c.get("rotary_dim", width)
        q, k = (turn(part, place, c["rope_theta"], turned) for part in (q, k))
        attended = attention(q, k, v, place[:, None] >= place)
        if c["gated_attention"]:
            attended = attended * torch.sigmoid(gate)
        x = x + attended @ self._w(layer + "self_attn.o_proj").T
        n = self._norm(layer + "post_attention_layernorm", x)
        up = n @ self._w(layer + "mlp.up_proj").T
        gated = torch.nn.functional.silu(n @ self._w(layer + "mlp.gate_proj").T) * up
        return self._norm("norm", x + gated @ self._w(layer + "mlp.down_proj").T)

    def _w(self, name: str) -> Tensor:
        return self.weights[f"mtp.{name}.weight"]

    def _norm(self, name: str, x: Tensor) -> Tensor:
        return rms(x, self._w(name) + self.config["norm_offset"], self.config["norm_eps"])
