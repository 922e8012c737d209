"""The forward pass over rows of any lengths, planned on the host.

The CPU runs rounds this way, without padding and with rows read in place; see
:mod:`ninfer.runtime.program.round_stages` for rows of one shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ninfer.runtime.models.decoder import Decoder
from ninfer.runtime.models.forward_batch import RowInput, forward_batch
from ninfer.runtime.models.kv_pool import KvPool


class RoundColumns(NamedTuple):
    """What a round's forward pass says of its columns; rows are padded to the longest.

    Shapes: logits float32[B, P, vocab_rows]; features dtype[B, P, width], what a drafter reads.
            A place after a row's last column holds what that column does, or anything.
    """

    logits: Tensor
    features: Tensor

    def features_of(self, row: int, columns: int) -> Tensor:
        """Return the features of a row's columns."""
        return self.features[row, :columns]


DecodeForward = Callable[[Sequence[RowInput]], RoundColumns]
"""Runs the new columns of rows, as many as each has."""


def decode_forward(decoder: Decoder, pool: KvPool, taps: Sequence[int] = ()) -> DecodeForward:
    """Return the way to run rows over a pool.

    Features are the streams after the layers ``taps``, or without any the final hidden states.
    """

    def eager(rows: Sequence[RowInput]) -> RoundColumns:
        states = decoder.states(forward_batch(rows, pool), pool, taps)
        logits = decoder.logits(states.hidden)
        columns = [len(row.token_ids) for row in rows]
        return RoundColumns(_padded(logits, columns), _padded(states.features, columns))

    return eager


def _padded(flat: Tensor, columns: Sequence[int]) -> Tensor:
    """Return [B, P, ·] from the columns of all rows one after the other."""
    longest = max(columns)
    if min(columns) == longest:
        return flat.view(len(columns), longest, -1)
    places, first = [], 0
    for count in columns:
        places += [first + min(place, count - 1) for place in range(longest)]
        first += count
    chosen = flat.index_select(0, torch.tensor(places, device=flat.device))
    return chosen.view(len(columns), longest, -1)
