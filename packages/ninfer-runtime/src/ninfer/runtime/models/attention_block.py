"""One layer that keeps keys and values: attention and MLP."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ninfer.runtime.models.attention import attend
from ninfer.runtime.models.config import DecoderConfig
from ninfer.runtime.models.forward_batch import ForwardBatch
from ninfer.runtime.models.linear import LinearStrategy
from ninfer.runtime.models.mlp import GatedMlp
from ninfer.runtime.models.norm import prepare_norm
from ninfer.runtime.models.rope import rotate
from ninfer.runtime.models.weights import LayerWeights


class AttentionBlock:
    """Attention and MLP of one layer, each behind a norm and a residual.

    Math: with an output gate what every head attends to is multiplied by σ(gate) before the output
          product; with a rotary width below the head's only its first numbers turn.
    """

    def __init__(
        self, config: DecoderConfig, weights: LayerWeights, strategy: LinearStrategy
    ) -> None:
        self._config = config
        self._input_norm = prepare_norm(weights.input_norm, config.norm_eps)
        self._qkv = strategy.prepare(weights.qkv.weight, weights.qkv.bias)
        self._head_norm = weights.head_norm
        self._output = strategy.prepare(weights.output.weight, weights.output.bias)
        self._mlp = GatedMlp(weights.mlp, config.norm_eps, strategy)

    def __call__(
        self,
        x: Tensor,
        rotation: tuple[Tensor, Tensor],
        batch: ForwardBatch,
        keys: Tensor,
        values: Tensor,
    ) -> Tensor:
        """Return the residual stream after this layer, [N, hidden].

        Shapes:  keys, values [slots, kv_heads, head_dim] of this layer.
        Effects: keys and values of all columns are written at the batch's slots.
        """
        c = self._config
        qkv = self._qkv(self._input_norm(x)).view(x.shape[0], -1, c.head_dim)
        qk = qkv[:, : c.heads + c.kv_heads]
        if self._head_norm is not None:
            qk = functional.rms_norm(qk, (c.head_dim,), eps=c.norm_eps) * self._head_norm
        qk = rotate(qk, *rotation)
        first_gate = c.heads + 2 * c.kv_heads
        keys.index_copy_(0, batch.slots, qk[:, c.heads :])
        values.index_copy_(0, batch.slots, qkv[:, c.heads + c.kv_heads : first_gate])
        attended = attend(qk[:, : c.heads], keys, values, batch)
        if c.output_gate:
            attended = attended * torch.sigmoid(qkv[:, first_gate:].flatten(1))
        return self._mlp(self._output.added_to(x, attended))
