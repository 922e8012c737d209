"""Root-mean-square norm."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from ninfer.runtime.models.kernels import has_kernels

Norm = Callable[[Tensor], Tensor]
"""Scales the last axis of [..., width]."""


def prepare_norm(weight: Tensor, eps: float) -> Norm:
    """Return ``x / sqrt(mean(x²) + eps) · weight`` in the format of x, computed in float32.

    The CPU has no fused kernel for it but has one for the layer norm, and a row beside its own
    negative has mean 0 and the same mean square: 10 µs instead of 20 for [4, 576].
    """
    width = weight.shape[-1]
    if has_kernels(weight.device.type):
        from ninfer.runtime.models.pointwise_kernels import rms_norm

        return lambda x: rms_norm(x, weight, eps)
    if weight.device.type != "cpu" and weight.dtype == torch.float32:
        # A scale that is finer than x would leave the fused kernel, with a warning.
        return lambda x: functional.rms_norm(x.float(), (width,), weight, eps).to(x.dtype)
    if weight.device.type != "cpu":
        return lambda x: functional.rms_norm(x, (width,), weight, eps)
    doubled = torch.cat((weight, torch.zeros_like(weight)))

    def norm(x: Tensor) -> Tensor:
        mirrored = torch.cat((x, -x), dim=-1)
        return functional.layer_norm(mirrored, (2 * width,), doubled, None, eps)[..., :width]

    return norm
