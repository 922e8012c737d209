"""How a matrix product is done: one strategy per device and number format."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

PACKING_ROWS = 4
"""The batch that packed weights are laid out for; measured to serve 1 to 512 rows well."""


class Linear(Protocol):
    """A prepared product with one weight, for x[N, in]."""

    def __call__(self, x: Tensor) -> Tensor:
        """Return ``x @ weight.T + bias``, [N, out] in the format of ``x``."""
        ...

    def added_to(self, residual: Tensor, x: Tensor) -> Tensor:
        """Return ``residual + x @ weight.T + bias``; the residual [N, out] stays as it is."""
        ...


class LinearStrategy(Protocol):
    """Prepares weights [out, in] for repeated products."""

    name: str

    def prepare(self, weight: Tensor, bias: Tensor | None = None) -> Linear:
        """Return the product with one weight; the weight may be copied and dropped."""
        ...


class PlainStrategy:
    """The library's own product, on any device and in any format."""

    name = "plain"

    def prepare(self, weight: Tensor, bias: Tensor | None = None) -> Linear:
        """Implements: LinearStrategy.prepare; keeps the weight as it is."""
        return _PlainLinear(weight, bias)


class PackedStrategy:
    """Weights laid out once for oneDNN's bfloat16 kernels.

    Uses private operators (torch 2.15), so :func:`choose_strategy` checks them first.
    Measured with AMX on 2 threads, [49152, 576]: 1.4 ms for 1 to 8 rows; plain takes 2.3 ms for 2.
    """

    name = "packed"

    def prepare(self, weight: Tensor, bias: Tensor | None = None) -> Linear:
        """Implements: LinearStrategy.prepare; keeps only the packed copy."""
        return _PackedLinear(weight, bias)


class _PlainLinear:
    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self._weight = weight
        self._bias = bias

    def __call__(self, x: Tensor) -> Tensor:
        return functional.linear(x, self._weight, self._bias)

    def added_to(self, residual: Tensor, x: Tensor) -> Tensor:
        return residual + self(x)


class _PackedLinear:
    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self._packed = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), PACKING_ROWS)
        self._bias = bias
        # Resolved overloads: looking one up costs as much as a small operator.
        self._product = torch.ops.mkldnn._linear_pointwise.default
        self._sum = torch.ops.mkldnn._linear_pointwise.binary

    def __call__(self, x: Tensor) -> Tensor:
        product: Tensor = self._product(x, self._packed, self._bias, "none", [], "")
        return product

    def added_to(self, residual: Tensor, x: Tensor) -> Tensor:
        total: Tensor = self._sum(x, residual, self._packed, self._bias, "add")
        return total


def choose_strategy(device: torch.device, dtype: torch.dtype) -> LinearStrategy:
    """Return the fastest strategy that computes right numbers here."""
    if device.type == "cpu" and dtype == torch.bfloat16 and _is_packing_sound():
        return PackedStrategy()
    return PlainStrategy()


def _is_packing_sound() -> bool:
    """Compare packed with plain products; a library without the operators has none."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    steps = torch.arange(64 * 32, dtype=torch.float32)
    weight = torch.sin(steps).reshape(64, 32).to(torch.bfloat16)
    # As rows of a wider tensor, because a norm's output is.
    x = torch.cos(steps[: 3 * 64]).reshape(3, 64).to(torch.bfloat16)[:, :32]
    bias = torch.sin(steps[:64] + 0.5).to(torch.bfloat16)
    residual = torch.cos(steps[: 3 * 64]).reshape(3, 64).to(torch.bfloat16)
    try:
        packed = PackedStrategy().prepare(weight, bias)
        found, total = packed(x), packed.added_to(residual, x)
    except (AttributeError, RuntimeError):
        return False
    expected = functional.linear(x.float(), weight.float(), bias.float())
    return torch.allclose(found.float(), expected, rtol=0.02, atol=0.05) and torch.allclose(
        total.float(), residual.float() + expected, rtol=0.02, atol=0.05
    )
