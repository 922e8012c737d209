"""DFlash and DFlash2 by their formulas, column by column, without caches or batches.

Shares no product code. Source: reference contract, sections 3.3 and 3.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from support.mtp_oracle import attention, rms, turn

CANDIDATES = 16


@dataclass(frozen=True)
class Choice:
    """One place of a block: candidates best first, their energies, and what was taken."""

    ids: list[int]
    energies: list[float]
    token: int

    def law(self, temperature: float) -> dict[int, float]:
        """Return q."""
        if temperature <= 0:
            return {self.ids[self.energies.index(max(self.energies))]: 1.0}
        weights = (torch.tensor(self.energies, dtype=torch.float64) / temperature).softmax(0)
        return dict(zip(self.ids, weights.tolist(), strict=True))


@dataclass(frozen=True)
class BlockOracle:
    """One drafter's weights beside its target's embedding and head."""

    config: dict[str, Any]
    weights: dict[str, Tensor]
    embedding: Tensor
    head: Tensor

    def logits(
        self, streams: Tensor, anchor: int, block: int, domain: int
    ) -> tuple[Tensor, Tensor]:
        """Return the head's logits [block, domain] in the masks' places, and the hidden states.

        Shapes: streams float32[F, taps · width], of every column before the anchor.
        """
        c = self.config
        context = rms(streams @ self._w("fc").T, self._w("hidden_norm"), c["norm_eps"])
        tokens = [anchor, *[c["mask_token"]] * block]
        x = self.embedding[tokens]
        frontier = len(streams)
        for layer in range(c["layers"]):
            x = self._layer(f"layers.{layer}.", x, context, frontier)
        hidden = rms(x, self._w("norm"), c["norm_eps"])[1:]
        return hidden @ self.head[:domain].T, hidden

    def walk(
        self, logits: Tensor, hidden: Tensor, anchor: int, taken: Sequence[int] | None = None
    ) -> list[Choice]:
        """Walk over candidates: along ``taken``, else always to the best."""
        a, b = self._w("selector.predecessor"), self._w("selector.successor")
        previous, choices = anchor, []
        for place, row in enumerate(logits):
            order = sorted(range(len(row)), key=lambda t: (-float(row[t]), t))[:CANDIDATES]
            gate = self._w("selector.hidden") @ hidden[place]
            energies = [float(row[t] + (a[previous] * gate * b[t]).sum()) for t in order]
            best = order[energies.index(max(energies))]
            previous = best if taken is None else taken[place]
            choices.append(Choice(order, energies, previous))
        return choices

    def _layer(self, prefix: str, x: Tensor, context: Tensor, frontier: int) -> Tensor:
        c = self.config
        width = c["head_dim"]

        def keys(source: Tensor, begin: int) -> Tensor:
            k = (source @ self._w(prefix + "self_attn.k_proj").T).view(len(source), -1, width)
            k = rms(k, self._w(prefix + "self_attn.k_norm"), c["norm_eps"])
            return turn(k, begin + torch.arange(len(source)), c["rope_theta"], width)

        def values(source: Tensor) -> Tensor:
            return (source @ self._w(prefix + "self_attn.v_proj").T).view(len(source), -1, width)

        def attend(n: Tensor) -> Tensor:
            q = (n @ self._w(prefix + "self_attn.q_proj").T).view(len(n), -1, width)
            q = rms(q, self._w(prefix + "self_attn.q_norm"), c["norm_eps"])
            q = turn(q, frontier + torch.arange(len(n)), c["rope_theta"], width)
            k = torch.cat((keys(context, 0), keys(n, frontier)))
            v = torch.cat((values(context), values(n)))
            everything = torch.ones(len(n), len(k), dtype=torch.bool)
            return attention(q, k, v, everything) @ self._w(prefix + "self_attn.o_proj").T

        def mlp(n: Tensor) -> Tensor:
            up = n @ self._w(prefix + "mlp.up_proj").T
            gate = torch.nn.functional.silu(n @ self._w(prefix + "mlp.gate_proj").T)
            return (gate * up) @ self._w(prefix + "mlp.down_proj").T

        n = rms(x, self._w(prefix + "input_layernorm"), c["norm_eps"])
        x = x + self._around(prefix + "attention_conv", n, attend)
        n = rms(x, self._w(prefix + "post_attention_layernorm"), c["norm_eps"])
        return x + self._around(prefix + "mlp_conv", n, mlp)

    def _around(self, name: str, n: Tensor, sublayer: Any) -> Tensor:
        if self.config["drafter"] == "dflash":
            return sublayer(n)
        kernel = self._w(f"{name}.kernel_projection")
        return self._conv(name, 1, sublayer(self._conv(name, 0, n, n, kernel)), n, kernel)

    def _conv(self, name: str, side: int, x: Tensor, n: Tensor, kernel: Tensor) -> Tensor:
        """out[i, c] = (b0[c] + d0[i, g(c)]) x[i, c] + [i > 0] (b1[c] + d1[i, g(c)]) x[i − 1, c]."""
        hidden, group = self.config["hidden"], self.config["conv_group"]
        groups = hidden // group
        base = self.weights[f"{name}.base"]
        out = torch.empty_like(x)
        for i in range(len(x)):
            deltas = kernel @ n[i]
            for channel in range(hidden):
                first = (side * 2) * groups + channel // group
                value = (base[side, 0, channel] + deltas[first]) * x[i, channel]
                if i:
                    second = deltas[first + groups]
                    value = value + (base[side, 1, channel] + second) * x[i - 1, channel]
                out[i, channel] = value
        return out

    def _w(self, name: str) -> Tensor:
        return self.weights[f"{name}.weight"]
