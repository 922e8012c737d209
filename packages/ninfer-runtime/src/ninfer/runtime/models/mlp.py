"""The gated MLP of a layer, behind a norm and a residual."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from ninfer.runtime.models.kernels import has_kernels
from ninfer.runtime.models.linear import LinearStrategy
from ninfer.runtime.models.norm import prepare_norm
from ninfer.runtime.models.weights import MlpWeights


class GatedMlp:
    """Adds W_down (silu(W_gate norm(x)) · W_up norm(x)) to x[N, hidden]."""

    def __init__(self, weights: MlpWeights, eps: float, strategy: LinearStrategy) -> None:
        self._norm = prepare_norm(weights.norm, eps)
        self._gate_up = strategy.prepare(weights.gate_up.weight, weights.gate_up.bias)
        self._down = strategy.prepare(weights.down.weight, weights.down.bias)

    def __call__(self, x: Tensor) -> Tensor:
        """Return the residual stream after the MLP."""
        return self._down.added_to(x, gated(self._gate_up(self._norm(x))))


def gated(gate_up: Tensor) -> Tensor:
    """Return silu(gate) · up of [N, 2 · width], gate first."""
    if has_kernels(gate_up.device.type):
        from ninfer.runtime.models import pointwise_kernels

        return pointwise_kernels.gated(gate_up)
    gate, up = gate_up.chunk(2, dim=-1)
    return functional.silu(gate) * up
