"""The weights of a decoder under this project's own names, fused where one product serves.

Names: ``embedding``, ``norm``, ``head``, and per layer :class:`LayerWeights` or
:class:`DeltaWeights`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from ninfer.contract import ModelError
from ninfer.runtime.models.config import DecoderConfig


class TensorSource(Protocol):
    """Finds checkpoint tensors by name."""

    def has(self, name: str) -> bool:
        """Return whether there is such a tensor."""
        ...

    def fail(self, name: str, fact: str) -> ModelError:
        """Return the error of one tensor, which says where it was sought."""
        ...

    def tensor(self, name: str) -> Tensor:
        """Return a tensor.

        Raises: ModelError — there is none.
        """
        ...


@dataclass(frozen=True, slots=True)
class Projection:
    """A weight [out, in] and an optional bias [out]."""

    weight: Tensor
    bias: Tensor | None = None


@dataclass(frozen=True, slots=True)
class MlpWeights:
    """A gated MLP and the norm before it; gate_up [2 · ffn, hidden]."""

    norm: Tensor
    gate_up: Projection
    down: Projection


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One block with attention.

    Shapes: qkv [(heads + 2 · kv_heads) · head_dim, hidden], with an output gate heads · head_dim
            more rows; head_norm [heads + kv_heads, head_dim] scales queries and keys, None without
            qk-norm.
    """

    input_norm: Tensor
    qkv: Projection
    head_norm: Tensor | None
    output: Projection
    mlp: MlpWeights


@dataclass(frozen=True, slots=True)
class DeltaWeights:
    """One block with a gated delta rule.

    Shapes: input [conv_rows + value_rows + 2 · value_heads, hidden]: queries, keys and values, then
            z, b and a; conv float32[conv_columns, conv_rows]; log_rate and step_bias
            float32[value_heads]; gate_norm float32[value_dim].
    """

    input_norm: Tensor
    input: Projection
    conv: Tensor
    log_rate: Tensor
    step_bias: Tensor
    gate_norm: Tensor
    output: Projection
    mlp: MlpWeights


_FORMATS = (torch.bfloat16, torch.float16, torch.float32, torch.float64)
_NESTED_ROOT = "model.language_model."
"""What names begin with in checkpoints that hold a vision tower beside the language model."""


class WeightReader:
    """Reads weights in one format onto one device and checks every shape.

    Units: ``read_bytes`` of all tensors so far, as they stand on the device.
    """

    def __init__(
        self, source: TensorSource, config: DecoderConfig, device: torch.device, dtype: torch.dtype
    ) -> None:
        self._source = source
        self._config = config
        self._device = device
        self._dtype = dtype
        self.read_bytes = 0
        nested = source.has(_NESTED_ROOT + "embed_tokens.weight")
        self._root = _NESTED_ROOT if nested else "model."

    def embedding(self) -> Tensor:
        """Return the embedding matrix, [vocab_rows, hidden]."""
        c = self._config
        return self.read(self._root + "embed_tokens.weight", (c.vocab_rows, c.hidden))

    def norm(self) -> Tensor:
        """Return the scale of the final norm."""
        return self.scale(self._root + "norm.weight", self._config.hidden)

    def head(self) -> Tensor:
        """Return the output matrix, [vocab_rows, hidden]; the embedding where they are tied.

        A checkpoint that has a matrix of its own is not tied, whatever its configuration says.
        """
        c, own = self._config, "lm_head.weight"
        if c.tied_embeddings and not self._source.has(own):
            return self.embedding()
        return self.read(own, (c.vocab_rows, c.hidden))

    def layer(self, index: int) -> LayerWeights:
        """Return the weights of one block with attention.

        Raises: ModelError — a tensor is missing or has another shape.
        """
        return self.attention_layer(f"{self._root}layers.{index}.")

    def attention_layer(self, prefix: str) -> LayerWeights:
        """Return the weights of the block with attention whose names begin with ``prefix``.

        Raises: ModelError — a tensor is missing or has another shape.
        """
        c = self._config
        attention = prefix + "self_attn."
        queries, gate = self._queries(attention + "q_proj")
        keys = self.projection(attention + "k_proj", c.kv_rows, c.hidden, c.qkv_bias)
        values = self.projection(attention + "v_proj", c.kv_rows, c.hidden, c.qkv_bias)
        return LayerWeights(
            input_norm=self.scale(prefix + "input_layernorm.weight", c.hidden),
            qkv=_fused([queries, keys, values, *gate]),
            head_norm=self._head_norm(attention) if c.qk_norm else None,
            output=self.projection(attention + "o_proj", c.hidden, c.query_rows, c.output_bias),
            mlp=self._mlp(prefix),
        )

    def delta_layer(self, index: int) -> DeltaWeights:
        """Return the weights of one block with a gated delta rule.

        Raises: ModelError — a tensor is missing or has another shape.
        """
        c, d = self._config, self._config.delta
        if d is None:
            raise self._source.fail(f"layers.{index}", "is not of a hybrid model")
        prefix = f"{self._root}layers.{index}."
        mixer = prefix + "linear_attn."
        parts = [
            ("in_proj_qkv", d.conv_rows),
            ("in_proj_z", d.value_rows),
            ("in_proj_b", d.value_heads),
            ("in_proj_a", d.value_heads),
        ]
        wide = torch.float32
        conv = self.read(mixer + "conv1d.weight", (d.conv_rows, 1, d.conv_columns), wide)
        return DeltaWeights(
            input_norm=self.scale(prefix + "input_layernorm.weight", c.hidden),
            input=_fused([self.projection(mixer + n, rows, c.hidden) for n, rows in parts]),
            conv=conv.squeeze(1).t().contiguous(),
            log_rate=self.read(mixer + "A_log", (d.value_heads,), wide),
            step_bias=self.read(mixer + "dt_bias", (d.value_heads,), wide),
            gate_norm=self.read(mixer + "norm.weight", (d.value_dim,), wide),
            output=self.projection(mixer + "out_proj", c.hidden, d.value_rows),
            mlp=self._mlp(prefix),
        )

    def scale(self, name: str, width: int) -> Tensor:
        """Return the scale of a norm; one that is stored as a difference from 1 in float32."""
        if not self._config.centred_norms:
            return self.read(name, (width,))
        return self.read(name, (width,), torch.float32) + 1.0

    def projection(self, name: str, rows: int, columns: int, bias: bool = False) -> Projection:
        """Return a weight [rows, columns] and, where there is one, its bias."""
        weight = self.read(name + ".weight", (rows, columns))
        return Projection(weight, self.read(name + ".bias", (rows,)) if bias else None)

    def read(self, name: str, shape: tuple[int, ...], dtype: torch.dtype | None = None) -> Tensor:
        """Return a tensor on the device, in the reader's format unless another is named.

        Raises: ModelError — it is missing, has another shape, or holds what are no weights: whole
                numbers or 8-bit ones, whose scales lie elsewhere, or numbers that are not finite.
        """
        tensor = self._source.tensor(name)
        if tuple(tensor.shape) != shape:
            raise self._source.fail(name, f"shape {tuple(tensor.shape)}, expected {shape}")
        if tensor.dtype not in _FORMATS:
            raise self._source.fail(name, f"{tensor.dtype} is not served")
        found = tensor.to(self._device, self._dtype if dtype is None else dtype)
        if not _is_finite(found):
            raise self._source.fail(name, f"has numbers that are not finite in {found.dtype}")
        self.read_bytes += found.nbytes
        return found

    def _queries(self, name: str) -> tuple[Projection, list[Projection]]:
        """Return the query rows, and the gate's, which checkpoints interleave head by head."""
        c = self._config
        if not c.output_gate:
            return self.projection(name, c.query_rows, c.hidden, c.qkv_bias), []
        both = self.projection(name, 2 * c.query_rows, c.hidden).weight
        queries, gate = both.view(c.heads, 2, c.head_dim, c.hidden).unbind(1)
        return Projection(queries.flatten(0, 1)), [Projection(gate.flatten(0, 1))]

    def _mlp(self, prefix: str) -> MlpWeights:
        c, mlp = self._config, prefix + "mlp."
        gate_up = [
            self.projection(mlp + n, c.ffn, c.hidden, c.mlp_bias) for n in ("gate_proj", "up_proj")
        ]
        return MlpWeights(
            norm=self.scale(prefix + "post_attention_layernorm.weight", c.hidden),
            gate_up=_fused(gate_up),
            down=self.projection(mlp + "down_proj", c.hidden, c.ffn, c.mlp_bias),
        )

    def _head_norm(self, attention: str) -> Tensor:
        c = self._config
        query = self.scale(attention + "q_norm.weight", c.head_dim).expand(c.heads, -1)
        key = self.scale(attention + "k_norm.weight", c.head_dim).expand(c.kv_heads, -1)
        return torch.cat((query, key)).to(self._dtype)


def _is_finite(tensor: Tensor) -> bool:
    """Return whether all numbers are finite; one sum says so unless finite numbers overflow it."""
    total = tensor.sum()
    return bool(total.isfinite()) or bool(tensor.isfinite().all())


def _fused(parts: list[Projection]) -> Projection:
    weight = torch.cat([part.weight for part in parts])
    biases = [part.bias for part in parts if part.bias is not None]
    return Projection(weight, torch.cat(biases) if biases else None)
