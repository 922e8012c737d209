"""The weights of a dense decoder under this project's own names, fused where one product serves.

Names: ``embedding``, ``norm``, ``head``, and per layer ``layers.i`` as :class:`LayerWeights`.
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
class LayerWeights:
    """One block.

    Shapes: qkv [(heads + 2 · kv_heads) · head_dim, hidden]; gate_up [2 · ffn, hidden];
            head_norm [heads + kv_heads, head_dim] scales queries and keys, None without qk-norm.
    """

    input_norm: Tensor
    qkv: Projection
    head_norm: Tensor | None
    output: Projection
    mlp_norm: Tensor
    gate_up: Projection
    down: Projection


class WeightReader:
    """Reads weights in one format onto one device and checks every shape."""

    def __init__(
        self, source: TensorSource, config: DecoderConfig, device: torch.device, dtype: torch.dtype
    ) -> None:
        self._source = source
        self._config = config
        self._device = device
        self._dtype = dtype

    def embedding(self) -> Tensor:
        """Return the embedding matrix, [vocab_rows, hidden]."""
        c = self._config
        return self._read("model.embed_tokens.weight", (c.vocab_rows, c.hidden))

    def norm(self) -> Tensor:
        """Return the scale of the final norm."""
        return self._read("model.norm.weight", (self._config.hidden,))

    def head(self) -> Tensor:
        """Return the output matrix, [vocab_rows, hidden]; the embedding where they are tied."""
        c = self._config
        if c.tied_embeddings:
            return self.embedding()
        return self._read("lm_head.weight", (c.vocab_rows, c.hidden))

    def layer(self, index: int) -> LayerWeights:
        """Return one block's weights.

        Raises: ModelError — a tensor is missing or has another shape.
        """
        c = self._config
        prefix = f"model.layers.{index}."
        attention, mlp = prefix + "self_attn.", prefix + "mlp."
        q, kv, hidden, ffn = c.query_rows, c.kv_rows, c.hidden, c.ffn
        parts = [("q_proj", q), ("k_proj", kv), ("v_proj", kv)]
        qkv = [self._projection(attention + n, rows, hidden, c.qkv_bias) for n, rows in parts]
        gate_up = [
            self._projection(mlp + n, ffn, hidden, c.mlp_bias) for n in ("gate_proj", "up_proj")
        ]
        return LayerWeights(
            input_norm=self._read(prefix + "input_layernorm.weight", (hidden,)),
            qkv=_fused(qkv),
            head_norm=self._head_norm(attention) if c.qk_norm else None,
            output=self._projection(attention + "o_proj", hidden, q, c.output_bias),
            mlp_norm=self._read(prefix + "post_attention_layernorm.weight", (hidden,)),
            gate_up=_fused(gate_up),
            down=self._projection(mlp + "down_proj", hidden, ffn, c.mlp_bias),
        )

    def _head_norm(self, attention: str) -> Tensor:
        c = self._config
        query = self._read(attention + "q_norm.weight", (c.head_dim,)).expand(c.heads, -1)
        key = self._read(attention + "k_norm.weight", (c.head_dim,)).expand(c.kv_heads, -1)
        return torch.cat((query, key))

    def _projection(self, name: str, rows: int, columns: int, bias: bool) -> Projection:
        weight = self._read(name + ".weight", (rows, columns))
        return Projection(weight, self._read(name + ".bias", (rows,)) if bias else None)

    def _read(self, name: str, shape: tuple[int, ...]) -> Tensor:
        tensor = self._source.tensor(name)
        if tuple(tensor.shape) != shape:
            raise self._source.fail(name, f"shape {tuple(tensor.shape)}, expected {shape}")
        return tensor.to(self._device, self._dtype)


def _fused(parts: list[Projection]) -> Projection:
    weight = torch.cat([part.weight for part in parts])
    biases = [part.bias for part in parts if part.bias is not None]
    return Projection(weight, torch.cat(biases) if biases else None)
