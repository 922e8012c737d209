"""Rotary position embedding of half against half."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ninfer.runtime.models.config import RopeConfig, RopeKind


def rotation_frequencies(rope: RopeConfig) -> Tensor:
    """Return radians per position, float32[rotary_dim / 2]."""
    exponents = torch.arange(0, rope.rotary_dim, 2, dtype=torch.float32) / rope.rotary_dim
    frequencies = 1.0 / (rope.theta**exponents)
    match rope.kind:
        case RopeKind.PLAIN:
            return frequencies
        case RopeKind.LINEAR:
            return frequencies / rope.factor
        case RopeKind.FACTORS:
            return frequencies / torch.tensor(rope.factors, dtype=torch.float32)
        case RopeKind.LLAMA3:
            return _llama3_frequencies(rope, frequencies)


def _llama3_frequencies(rope: RopeConfig, frequencies: Tensor) -> Tensor:
    """Blend between kept and divided frequencies by turns within the original context.

    Math: turns = original_context · f / 2π; w = clamp((turns − low) / (high − low), 0, 1);
          f' = (1 − w) · f / factor + w · f.
    """
    turns = rope.original_context * frequencies / (2 * math.pi)
    span = rope.high_freq_factor - rope.low_freq_factor
    kept = ((turns - rope.low_freq_factor) / span).clamp(0, 1)
    return (1 - kept) * frequencies / rope.factor + kept * frequencies


class Rotation:
    """Turns positions into the cosines and sines of one forward pass."""

    def __init__(self, rope: RopeConfig, device: torch.device, dtype: torch.dtype) -> None:
        frequencies = rotation_frequencies(rope)
        # The minus sign of the first half lives in the sines: a rotation is then one roll.
        self._signed = torch.cat((-frequencies, frequencies)).to(device)
        self._dtype = dtype

    def at(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return cosines and sines, each [N, 1, rotary_dim], of positions int64[N]."""
        angles = positions.to(torch.float32)[:, None, None] * self._signed
        return angles.cos().to(self._dtype), angles.sin().to(self._dtype)


def rotate(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Return heads rotated to their positions.

    Math:   out = x · cos + roll(x, rotary_dim / 2) · sin, with the sign in ``sines``, for the first
            rotary_dim numbers of a head; the others stay.
    Shapes: x [N, heads, head_dim]; cosines, sines [N, 1, rotary_dim].
    """
    turned = cosines.shape[-1]
    if turned < x.shape[-1]:
        return torch.cat((rotate(x[..., :turned], cosines, sines), x[..., turned:]), dim=-1)
    return torch.addcmul(x * cosines, x.roll(x.shape[-1] // 2, -1), sines)
