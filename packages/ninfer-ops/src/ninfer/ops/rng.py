"""The counter RNG: a pure function of seed, logical position, purpose and sub-index.

Nothing is drawn from a stream, so a row's numbers do not depend on its place in the batch, on other
rows, or on how often a round was replayed.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import torch
from torch import Tensor

from ninfer.contract import RngPurpose

POSITION_LIMIT: Final = 1 << 40
"""Positions of one key: its bits above are the purpose's."""

_WORD: Final = (1 << 64) - 1
_GOLDEN: Final = 0x9E3779B97F4A7C15
_FIRST: Final = 0xBF58476D1CE4E5B9
_SECOND: Final = 0x94D049BB133111EB


class RngKey(NamedTuple):
    """What a uniform number is keyed by.

    Units: position in tokens of the accepted ledger, below 2**40; sub_index below 2**16.
    """

    seed: int
    position: int
    purpose: RngPurpose
    sub_index: int = 0

    def bits(self) -> int:
        """Return the 64 random bits of this key.

        Math:   counter = position | purpose << 40 | sub_index << 48
                bits = splitmix64(splitmix64(seed) ^ counter), all modulo 2**64, where
                splitmix64(x): x += 0x9E3779B97F4A7C15; x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
                x = (x ^ x >> 27) * 0x94D049BB133111EB; x ^ x >> 31.
        Source: reference contract, section 2; splitmix64 by S. Vigna.
        """
        counter = self.position | self.purpose << 40 | self.sub_index << 48
        return _splitmix64(_splitmix64(self.seed) ^ counter)

    def uniform(self) -> float:
        """Return the top 24 bits as a number of [0, 1)."""
        return (self.bits() >> 40) / (1 << 24)


def uniforms(seeds: Tensor, positions: Tensor, purposes: Tensor, sub_indices: Tensor) -> Tensor:
    """Return the uniform number of every key.

    Math:   RngKey(seed, position, purpose, sub_index).uniform(), element by element.
    Shapes: int64, broadcastable; seeds hold the unsigned bit pattern. Returns float64.
    """
    counter = positions | purposes << 40 | sub_indices << 48
    bits = _splitmix64_tensor(_splitmix64_tensor(seeds) ^ counter)
    return _shift_right(bits, 40).to(torch.float64) * 2.0**-24


def _splitmix64(value: int) -> int:
    value = (value + _GOLDEN) & _WORD
    value = ((value ^ value >> 30) * _FIRST) & _WORD
    value = ((value ^ value >> 27) * _SECOND) & _WORD
    return value ^ value >> 31


def _splitmix64_tensor(value: Tensor) -> Tensor:
    value = value + _signed(_GOLDEN)
    value = (value ^ _shift_right(value, 30)) * _signed(_FIRST)
    value = (value ^ _shift_right(value, 27)) * _signed(_SECOND)
    return value ^ _shift_right(value, 31)


def _shift_right(value: Tensor, bits: int) -> Tensor:
    # int64 shifts copy the sign; the mask makes the shift a logical one.
    return (value >> bits) & ((1 << (64 - bits)) - 1)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
