"""The shape of a decoder model, as one record for every family.

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
class DeltaConfig:
    """The layers of a hybrid that keep a recurrent state instead of keys and values.

    ``layers`` holds their indices, ``conv_columns`` the columns that one output of the causal
    convolution reads.
    """

    layers: tuple[int, ...]
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv_columns: int

    @property
    def key_rows(self) -> int:
        """Return the width of all keys together."""
        return self.key_heads * self.key_dim

    @property
    def value_rows(self) -> int:
        """Return the width of all values together."""
        return self.value_heads * self.value_dim

    @property
    def conv_rows(self) -> int:
        """Return the width of what the convolution reads: queries, keys and values."""
        return 2 * self.key_rows + self.value_rows


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """A decoder: pre-norm blocks of grouped-query attention, or of a gated delta rule, and an MLP.

    ``delta`` is None for a dense model. With ``output_gate`` queries bring a gate for what their
    head attends to; with ``centred_norms`` a norm's scale is stored as its difference from 1.
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
    output_gate: bool = False
    centred_norms: bool = False
    delta: DeltaConfig | None = None

    @property
    def attention_layers(self) -> int:
        """Return the layers that keep keys and values."""
        return self.layers - (0 if self.delta is None else len(self.delta.layers))

    @property
    def query_rows(self) -> int:
        """Return the width of all query heads together."""
        return self.heads * self.head_dim

    @property
    def kv_rows(self) -> int:
        """Return the width of all key heads together."""
        return self.kv_heads * self.head_dim
