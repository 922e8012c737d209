"""The recurrent states of all rows: convolution tails and delta-rule states.

A forward pass only reads states; what it found stays beside them as records, provisional like
keys and values beyond a frontier. A commit folds the accepted prefix of every row; the next pass
drops records that nobody committed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ninfer.contract import IntegrityError
from ninfer.runtime.models.config import DeltaConfig
from ninfer.runtime.models.gated_delta import DeltaRecords, fold, fold_all
from ninfer.runtime.models.kernels import has_kernels
from ninfer.runtime.models.recurrent_plan import RecurrentPlan


class SavedStates(NamedTuple):
    """One row's tails and states of all layers in host memory."""

    tails: Tensor
    states: Tensor

    @property
    def host_bytes(self) -> int:
        """Return the bytes of both."""
        return self.tails.nbytes + self.states.nbytes


class WholeRecords(NamedTuple):
    """What one layer found in a pass that stays as a whole: the rows' states after it.

    Shapes: tails dtype[R, conv_columns − 1, conv_rows]; states as the pool's.
    """

    tails: Tensor
    states: Tensor


class PrefixRecords(NamedTuple):
    """What one layer found in a pass of which any prefix may stay.

    Shapes: inputs dtype[R, conv_columns − 1 + T, conv_rows], the old tail and then every column.
    """

    inputs: Tensor
    delta: DeltaRecords


LayerRecords = WholeRecords | PrefixRecords


class RoundRecords(NamedTuple):
    """The records of all layers of one pass.

    ``fold``, where a graph does it, takes the records in for these accepted columns of every row.
    """

    plan: RecurrentPlan
    layers: tuple[LayerRecords, ...]
    fold: Callable[[Sequence[int]], None] | None = None


class RecurrentPool:
    """Storage for recurrent states, one place per row.

    Shapes: tails dtype[layers, rows, conv_columns − 1, conv_rows], the last inputs of the causal
            convolution; states float32[layers, rows, value_heads, key_dim, value_dim].
    """

    def __init__(
        self, config: DeltaConfig, rows: int, *, device: torch.device, dtype: torch.dtype
    ) -> None:
        c, layers = config, len(config.layers)
        self.tails = torch.zeros(
            (layers, rows, c.conv_columns - 1, c.conv_rows), device=device, dtype=dtype
        )
        self.states = torch.zeros(
            (layers, rows, c.value_heads, c.key_dim, c.value_dim),
            device=device,
            dtype=torch.float32,
        )
        self.records: RoundRecords | None = None
        self._found: list[LayerRecords] = []

    @property
    def row_bytes(self) -> int:
        """Return the bytes of one row over all layers."""
        return self.tails[:, 0].nbytes + self.states[:, 0].nbytes

    @property
    def state_bytes(self) -> int:
        """Return the bytes of all rows over all layers."""
        return self.tails.nbytes + self.states.nbytes

    def begin(self) -> None:
        """Start a pass; records of an earlier one are dropped."""
        self.records = None
        self._found = []

    def record(
        self, plan: RecurrentPlan, inputs: Tensor, states: Tensor, delta: DeltaRecords
    ) -> None:
        """Keep what the next layer of a pass found; the last layer completes the records.

        ``states`` are those that the layer read. A pass that stays as a whole keeps no columns.
        """
        if plan.is_whole:
            tails = _tails(inputs, plan.counts, self.tails.shape[2])
            self._found.append(WholeRecords(tails, fold_all(states, delta)))
        else:
            self._found.append(PrefixRecords(inputs, delta))
        if len(self._found) == len(self.tails):
            self.records = RoundRecords(plan, tuple(self._found))

    @torch.inference_mode()
    def commit_all(self) -> None:
        """Make all columns of the last pass permanent, which was planned to stay as a whole.

        Raises: IntegrityError — there are no records, or it was not.
        """
        plan, layers, _ = self._take()
        for layer, found in enumerate(layers):
            if not isinstance(found, WholeRecords):
                raise IntegrityError("records: of a pass of which any prefix may stay")
            self._write(layer, plan, found.tails, found.states)

    @torch.inference_mode()
    def commit(self, accepted: Sequence[int]) -> None:
        """Make the first ``accepted[r]`` columns of every row of the last pass permanent.

        Effects: a row with 0 keeps its state bit for bit.
        Raises:  IntegrityError — there are no records, not of as many rows, or the pass was
                 planned to stay as a whole.
        """
        records = self._take()
        if len(accepted) != len(records.plan.pool_rows):
            raise IntegrityError(
                f"records: {len(records.plan.pool_rows)} rows, {len(accepted)} prefixes to fold"
            )
        if records.fold is not None:
            records.fold(accepted)
        else:
            self.fold(records, torch.tensor(accepted).to(self.states.device))

    @torch.inference_mode()
    def fold(self, records: RoundRecords, counts: Tensor) -> None:
        """Write the states after the first ``counts`` int64[R] columns of every row.

        Raises: IntegrityError — the pass was planned to stay as a whole.
        """
        layers = [found for found in records.layers if isinstance(found, PrefixRecords)]
        if len(layers) != len(self.states):
            raise IntegrityError("records: of a pass that stays as a whole")
        pool_rows, places = records.plan.pool_rows, self.tails.shape[2]
        # All layers at once: a device pays for each call, and the rows of layers are like any rows.
        every = counts.repeat(len(layers))
        inputs = torch.cat([found.inputs for found in layers])
        delta = DeltaRecords(*map(torch.cat, zip(*(found.delta for found in layers), strict=True)))
        tails = _tails(inputs, every, places)
        self.tails.index_copy_(1, pool_rows, tails.view(len(layers), len(counts), places, -1))
        if has_kernels(self.states.device.type):
            from ninfer.runtime.models.fold_kernel import fold_in_place

            fold_in_place(self.states, pool_rows, delta, counts)
            return
        old = self.states.index_select(1, pool_rows)
        states = fold(old.flatten(0, 1), delta, every).view(old.shape)
        self.states.index_copy_(1, pool_rows, states)

    def drop(self) -> None:
        """Forget the last pass; every state is as before it."""
        self.begin()

    def reset(self, row: int) -> None:
        """Set one row to the state before any token."""
        self.tails[:, row].zero_()
        self.states[:, row].zero_()

    def save(self, row: int) -> SavedStates:
        """Return host copies of one row."""
        return SavedStates(
            self.tails[:, row].to("cpu", copy=True), self.states[:, row].to("cpu", copy=True)
        )

    def restore(self, row: int, saved: SavedStates) -> None:
        """Write a saved row back, to any row."""
        self.tails[:, row].copy_(saved.tails)
        self.states[:, row].copy_(saved.states)

    def _take(self) -> RoundRecords:
        records = self.records
        if records is None:
            raise IntegrityError("records: no pass to commit")
        self.begin()
        return records

    def _write(self, layer: int, plan: RecurrentPlan, tails: Tensor, states: Tensor) -> None:
        self.tails[layer].index_copy_(0, plan.pool_rows, tails)
        self.states[layer].index_copy_(0, plan.pool_rows, states)


def _tails(inputs: Tensor, counts: Tensor, columns: int) -> Tensor:
    """Return the last inputs after the first ``counts`` columns of every row."""
    places = counts[:, None] + torch.arange(columns, device=counts.device)
    return inputs.gather(1, places[..., None].expand(-1, -1, inputs.shape[-1]))
