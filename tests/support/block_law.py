"""DFlash and DFlash2 with windows by their formulas in float64, over whole texts and dense masks.

Shares no product code. Source: reference contract, sections 3.3 and 3.4. A configuration is one of
this project's own folder format; ``windows`` holds 0 where a layer sees everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from support.windows import attended, near

CANDIDATES = 16


@dataclass(frozen=True)
class BlockLaw:
    """One drafter's weights beside its target's embedding and head."""

    config: dict[str, Any]
    weights: dict[str, Tensor]
    embedding: Tensor
    head: Tensor

    def drafts(self, streams: Tensor, anchor: int, block: int, domain: int) -> list[int]:
        """Return the greedy drafts of a block of ``block`` masks.

        Shapes: streams [F, taps · hidden], of every column before the anchor.
        """
        hidden = self.hidden(streams, anchor, block)
        logits = hidden @ self.head[:domain].double().T
        if self.config["drafter"] == "dflash":
            return logits.argmax(-1).tolist()
        before, after = self._w("selector.predecessor"), self._w("selector.successor")
        chosen = [anchor]
        for row, state in zip(logits, hidden, strict=True):
            best, ids = row.topk(CANDIDATES)
            gate = before[chosen[-1]] * (self._w("selector.hidden") @ state)
            chosen.append(int(ids[(best + after[ids] @ gate).argmax()]))
        return chosen[1:]

    def hidden(self, streams: Tensor, anchor: int, block: int) -> Tensor:
        """Return the hidden states float64[block, hidden] in the places of the masks."""
        c = self.config
        context = self._norm(streams.double() @ self._w("fc").T, "hidden_norm")
        x = self.embedding[[anchor, *[c["mask_token"]] * block]].double()
        windows: Sequence[int] = c.get("windows") or [0] * c["layers"]
        for layer, window in enumerate(windows):
            x = self._layer(f"layers.{layer}.", x, context, window or None)
        return self._norm(x, "norm")[1:]

    def _layer(self, prefix: str, x: Tensor, context: Tensor, window: int | None) -> Tensor:
        heads, frontier = prefix + "self_attn.", len(context)

        def attention(n: Tensor) -> Tensor:
            both = torch.cat((context, n))
            seen = near(frontier, len(n), len(both), window)
            q = self._heads(n, heads + "q_proj", heads + "q_norm", frontier)
            k = self._heads(both, heads + "k_proj", heads + "k_norm", 0)
            v = (both @ self._w(heads + "v_proj").T).view(len(both), -1, k.shape[2])
            return attended(q, k, v, seen).flatten(1) @ self._w(heads + "o_proj").T

        def mlp(n: Tensor) -> Tensor:
            gate, up = (n @ self._w(f"{prefix}mlp.{name}_proj").T for name in ("gate", "up"))
            return (gate * gate.sigmoid() * up) @ self._w(prefix + "mlp.down_proj").T

        n = self._norm(x, prefix + "input_layernorm")
        x = x + self._convolved(prefix + "attention_conv", n, attention)
        n = self._norm(x, prefix + "post_attention_layernorm")
        return x + self._convolved(prefix + "mlp_conv", n, mlp)

    def _convolved(self, name: str, n: Tensor, sublayer: Any) -> Tensor:
        if self.config["drafter"] == "dflash":
            return sublayer(n)
        group = self.config["conv_group"]
        deltas = (n @ self._w(f"{name}.kernel_projection").T).view(len(n), 2, 2, -1)
        taps = self.weights[f"{name}.base"].double() + deltas.repeat_interleave(group, -1)

        def side(index: int, x: Tensor) -> Tensor:
            before = torch.cat((torch.zeros_like(x[:1]), x[:-1]))
            return taps[:, index, 0] * x + taps[:, index, 1] * before

        return side(1, sublayer(side(0, n)))

    def _heads(self, x: Tensor, name: str, norm: str, first: int) -> Tensor:
        """Return normed heads turned to their positions, of which ``first`` is the first."""
        width = self.config["head_dim"]
        heads = self._norm((x @ self._w(name).T).view(len(x), -1, width), norm)
        rates = self.config["rope_theta"] ** (-torch.arange(0, width, 2).double() / width)
        angles = (first + torch.arange(len(x)).double())[:, None, None] * rates
        a, b = heads.chunk(2, -1)
        cosines, sines = angles.cos(), angles.sin()
        return torch.cat((a * cosines - b * sines, b * cosines + a * sines), -1)

    def _norm(self, x: Tensor, name: str) -> Tensor:
        mean = x.pow(2).mean(-1, keepdim=True)
        return x / (mean + self.config["norm_eps"]).sqrt() * self._w(name)

    def _w(self, name: str) -> Tensor:
        return self.weights[f"{name}.weight"].double()
