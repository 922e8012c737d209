"""The shape of a dense decoder model, as one record for every family.

Does not read files; :mod:`ninfer.runtime.models.registry` builds it from a ``config.json``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class RopeKind(Enum):
    """How the rotation frequencies are changed for long contexts."""

    PLAIN = "default"
    LINEAR = "linear"
    LLAMA3 = "llama3"
    FACTORS = "factors"


@dataclass(frozen=True, slots=True)
class RopeConfig:
    """Rotary position embedding.

    Math: f_j = theta^(−2j / rotary_dim), then by kind: LINEAR divides by ``factor``; FACTORS by
          ``factors[j]``; LLAMA3 divides long waves by ``factor``, keeps short ones, and blends in
          between by the number of turns within ``original_context``.
    """

    theta: float
    rotary_dim: int
    kind: RopeKind = RopeKind.PLAIN
    factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_context: int = 8192
    factors: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """A dense decoder: pre-norm blocks of grouped-query attention and a gated MLP.

    Units: ``vocab_rows`` counts the rows of the embedding matrix, padding included;
           ``context_tokens`` is the longest sequence the model was made for.
    """

    family: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab_rows: int
    norm_eps: float
    rope: RopeConfig
    context_tokens: int
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    tied_embeddings: bool = False

    @property
    def query_rows(self) -> int:
        """Return the width of all query heads together."""
        return self.heads * self.head_dim

    @property
    def kv_rows(self) -> int:
        """Return the width of all key heads together."""
        return self.kv_heads * self.head_dim
