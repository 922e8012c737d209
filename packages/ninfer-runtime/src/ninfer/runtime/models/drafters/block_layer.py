"""One layer of a block drafter: queries from the block, keys from the target's context and it.

Source: reference contract, sections 3.3 and 3.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from torch import Tensor
from torch.nn import functional

from ninfer.runtime.models.attention import attend
from ninfer.runtime.models.config import DecoderConfig
from ninfer.runtime.models.drafters.dynamic_conv import BlockOrder, DynamicConv
from ninfer.runtime.models.forward_batch import ForwardBatch
from ninfer.runtime.models.linear import LinearStrategy
from ninfer.runtime.models.mlp import gated
from ninfer.runtime.models.norm import prepare_norm
from ninfer.runtime.models.rope import rotate
from ninfer.runtime.models.weights import LayerWeights


class LayerConvs(NamedTuple):
    """The convolutions around the attention and around the MLP of one layer."""

    attention: DynamicConv
    mlp: DynamicConv


class BlockBatch(NamedTuple):
    """The columns of all blocks.

    ``views`` are the same columns by the window of a layer: what each sees of its context and of
    its whole block.
    """

    columns: ForwardBatch
    views: Mapping[int | None, ForwardBatch]
    rotation: tuple[Tensor, Tensor]
    order: BlockOrder


class BlockLayer:
    """Attention and MLP behind norms and residuals, each inside a convolution if there are any.

    Attention sees keys less than ``window`` positions away, on either side; all of them with None.
    """

    def __init__(
        self,
        config: DecoderConfig,
        weights: LayerWeights,
        strategy: LinearStrategy,
        convs: LayerConvs | None = None,
        window: int | None = None,
    ) -> None:
        self._config = config
        self._window = window
        self._convs = convs
        self._input_norm = prepare_norm(weights.input_norm, config.norm_eps)
        self._qkv = strategy.prepare(weights.qkv.weight)
        self._context = strategy.prepare(weights.qkv.weight[config.query_rows :].contiguous())
        self._head_norm = weights.head_norm
        self._output = strategy.prepare(weights.output.weight)
        self._mlp_norm = prepare_norm(weights.mlp.norm, config.norm_eps)
        self._gate_up = strategy.prepare(weights.mlp.gate_up.weight)
        self._down = strategy.prepare(weights.mlp.down.weight)

    def absorb(
        self,
        context: Tensor,
        rotation: tuple[Tensor, Tensor],
        slots: Tensor,
        keys: Tensor,
        values: Tensor,
    ) -> None:
        """Write keys and values of context columns [n, hidden] at slots int64[n]."""
        c = self._config
        kv = self._context(context).view(len(context), 2 * c.kv_heads, c.head_dim)
        keys.index_copy_(0, slots, rotate(self._normed(kv[:, : c.kv_heads], c.heads), *rotation))
        values.index_copy_(0, slots, kv[:, c.kv_heads :])

    def __call__(self, x: Tensor, batch: BlockBatch, keys: Tensor, values: Tensor) -> Tensor:
        """Return the residual stream of all block columns after this layer, [N, hidden].

        Effects: the blocks' own keys and values are written at their slots.
        """

        def attention(normed: Tensor) -> Tensor:
            return self._attention(normed, batch, keys, values)

        convs = self._convs
        if convs is None:
            x = x + attention(self._input_norm(x))
            return x + self._mlp(self._mlp_norm(x))
        x = x + _convolved(convs.attention, self._input_norm(x), batch.order, attention)
        return x + _convolved(convs.mlp, self._mlp_norm(x), batch.order, self._mlp)

    def _attention(self, normed: Tensor, batch: BlockBatch, keys: Tensor, values: Tensor) -> Tensor:
        c = self._config
        qkv = self._qkv(normed).view(len(normed), -1, c.head_dim)
        qk = rotate(self._normed(qkv[:, : c.heads + c.kv_heads], 0), *batch.rotation)
        keys.index_copy_(0, batch.columns.slots, qk[:, c.heads :])
        values.index_copy_(0, batch.columns.slots, qkv[:, c.heads + c.kv_heads :])
        return self._output(attend(qk[:, : c.heads], keys, values, batch.views[self._window]))

    def _mlp(self, normed: Tensor) -> Tensor:
        return self._down(gated(self._gate_up(normed)))

    def _normed(self, heads: Tensor, first: int) -> Tensor:
        """Return normed query and key heads, of which the first one is head ``first``."""
        if self._head_norm is None:
            return heads
        scale = self._head_norm[first : first + heads.shape[1]]
        width = (self._config.head_dim,)
        return functional.rms_norm(heads, width, eps=self._config.norm_eps) * scale


def _convolved(
    conv: DynamicConv, normed: Tensor, order: BlockOrder, sublayer: Callable[[Tensor], Tensor]
) -> Tensor:
    inward, outward = conv.taps(normed)
    return outward.apply(sublayer(inward.apply(normed, order)), order)
