"""One layer of a hybrid model that keeps a recurrent state: gated delta rule and MLP.

Reads states from a pool and leaves records there; it never writes a state.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ninfer.contract import IntegrityError
from ninfer.runtime.models.config import DecoderConfig, DeltaConfig
from ninfer.runtime.models.forward_batch import ForwardBatch
from ninfer.runtime.models.gated_delta import gated_delta
from ninfer.runtime.models.gated_delta_chunk import gated_delta_chunk
from ninfer.runtime.models.kernels import has_kernels
from ninfer.runtime.models.kv_pool import KvPool
from ninfer.runtime.models.linear import LinearStrategy
from ninfer.runtime.models.mlp import GatedMlp
from ninfer.runtime.models.norm import prepare_norm
from ninfer.runtime.models.recurrent_plan import RecurrentPlan
from ninfer.runtime.models.recurrent_pool import RecurrentPool
from ninfer.runtime.models.weights import DeltaWeights

UNIT_EPS = 1e-6
"""Added to the squared length of a query or key before it is scaled to 1."""


class DeltaBlock:
    """Gated delta rule and MLP of one layer, each behind a norm and a residual.

    Math: [u, z, b, a] = W norm(x); [q, k, v] = silu(conv(u)), q and k scaled to length 1 and q by
          1/√dk; g = −e^{A_log} softplus(a + dt_bias); β = σ(b); o by the gated delta rule; the
          rule adds W_o (rms_norm(o) · w · silu(z)). Value heads share keys in groups.
    """

    def __init__(
        self,
        config: DecoderConfig,
        weights: DeltaWeights,
        place: int,
        strategy: LinearStrategy,
    ) -> None:
        if config.delta is None:
            raise IntegrityError(f"{config.family}: has no recurrent layers")
        self._config: DeltaConfig = config.delta
        self._place = place
        self._eps = config.norm_eps
        self._input_norm = prepare_norm(weights.input_norm, config.norm_eps)
        self._input = strategy.prepare(weights.input.weight)
        self._conv = weights.conv
        self._rate = weights.log_rate.exp()
        self._step_bias = weights.step_bias
        self._gate_norm = weights.gate_norm
        self._output = strategy.prepare(weights.output.weight)
        self._mlp = GatedMlp(weights.mlp, config.norm_eps, strategy)

    def __call__(
        self, x: Tensor, rotation: tuple[Tensor, Tensor], batch: ForwardBatch, pool: KvPool
    ) -> Tensor:
        """Return the residual stream after this layer, [N, hidden].

        Effects: the pool gets this layer's records; its states are only read.
        Raises:  IntegrityError — the batch or the pool is of a dense model.
        """
        if batch.recurrent is None or pool.recurrent is None:
            raise IntegrityError("recurrent layer: the batch or the pool has no states")
        return self._mlp(self._mixed(x, batch.recurrent, pool.recurrent))

    def _mixed(self, x: Tensor, plan: RecurrentPlan, pool: RecurrentPool) -> Tensor:
        c = self._config
        u, z, b, a = torch.split(
            self._input(self._input_norm(x)),
            [c.conv_rows, c.value_rows, c.value_heads, c.value_heads],
            dim=-1,
        )
        if has_kernels(x.device.type) and plan.padding is None:
            mixed = self._in_few_launches(u, z, b, a, plan, pool)
            return self._output.added_to(x, mixed)
        tails = pool.tails[self._place].index_select(0, plan.pool_rows)
        inputs = torch.cat((tails, plan.pad(u)), dim=1)
        queries, keys, values = self._convolved(inputs)
        states = pool.states[self._place].index_select(0, plan.pool_rows)
        gates = self._gates(plan.pad(a), plan.pad(b), plan)
        read, records = gated_delta(queries, keys, values, *gates, states)
        pool.record(plan, inputs, states, records)
        mixed = plan.flatten(read.transpose(1, 2))
        mixed = functional.rms_norm(mixed, (c.value_dim,), self._gate_norm, self._eps)
        mixed = mixed * functional.silu(z.float()).view_as(mixed)
        return self._output.added_to(x, mixed.flatten(1).to(x.dtype))

    def _in_few_launches(
        self, u: Tensor, z: Tensor, b: Tensor, a: Tensor, plan: RecurrentPlan, pool: RecurrentPool
    ) -> Tensor:
        """Return what enters the output product; a device pays for each launch."""
        from ninfer.runtime.models.delta_mixer_kernel import convolve, gated_norm, joined
        from ninfer.runtime.models.gated_delta_kernel import gated_delta_rows

        states, rows = pool.states[self._place], plan.pool_rows
        inputs = joined(pool.tails[self._place], rows, u, plan.columns)
        rates = self._rate, self._step_bias
        gates = plan.pad(a), plan.pad(b)
        ready = convolve(self._config, inputs, self._conv, *gates, *rates, UNIT_EPS)
        if plan.is_whole:
            # A whole chunk of a prompt: many columns, and the states after them are wanted.
            found = states.index_select(0, rows)
            read, records = gated_delta_chunk(*ready, found)
            pool.record(plan, inputs, found, records)
        else:
            read, records = gated_delta_rows(*ready, states, rows)
            pool.record(plan, inputs, states, records)
        return gated_norm(read, self._gate_norm, z, self._eps, inputs.dtype)

    def _convolved(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values float32[R, value_heads, T, width] of every column."""
        c = self._config
        columns = inputs.shape[1] - c.conv_columns + 1
        wide = inputs.float()
        total = wide[:, :columns] * self._conv[0]
        for place in range(1, c.conv_columns):
            total = torch.addcmul(total, wide[:, place : place + columns], self._conv[place])
        widths = [c.key_rows, c.key_rows, c.value_rows]
        q, k, v = torch.split(functional.silu(total), widths, dim=-1)
        keys = self._unit(k)
        queries = self._unit(q) * c.key_dim**-0.5
        values = v.view(*v.shape[:2], c.value_heads, c.value_dim).transpose(1, 2)
        return queries, keys, values

    def _unit(self, x: Tensor) -> Tensor:
        c = self._config
        heads = x.view(*x.shape[:2], c.key_heads, c.key_dim).transpose(1, 2)
        heads = heads * torch.rsqrt(heads.square().sum(-1, keepdim=True) + UNIT_EPS)
        return heads.repeat_interleave(c.value_heads // c.key_heads, dim=1)

    def _gates(self, a: Tensor, b: Tensor, plan: RecurrentPlan) -> tuple[Tensor, Tensor]:
        """Return the decay g and β, float32[R, value_heads, T]; a dead column has 0 in both."""
        decay = -self._rate * functional.softplus(a.float() + self._step_bias)
        beta = b.float().sigmoid()
        return (
            plan.clear_dead(decay).transpose(1, 2),
            plan.clear_dead(beta).transpose(1, 2),
        )
