"""The forward pass of a decode round: eager on the CPU, captured graphs on CUDA.

Source: specification 9.1 and 9.3; graphs are per exact number of rows and per context profile, and
nothing of a request is part of one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from ninfer.runtime.models.decoder import Decoder
from ninfer.runtime.models.forward_batch import RowInput, forward_batch
from ninfer.runtime.models.kv_pool import PAGE_TOKENS, KvPool
from ninfer.runtime.models.paged_batch import pack_rows, paged_batch

if TYPE_CHECKING:
    from torch.cuda import _POOL_HANDLE

PROFILE_PAGES = 4
"""Pages of the shortest context profile; each further profile holds twice as many."""


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
    """Return the way to run rounds on the decoder's device.

    Features are the streams after the layers ``taps``, or without any the final hidden states.
    """
    if decoder.device.type == "cuda":
        return GraphForward(decoder, pool, taps)

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


class GraphForward:
    """Replays one captured graph per rows, columns and context profile, captured on first use.

    Effects: what is returned are the graph's own buffers, valid until its next replay.
    """

    def __init__(self, decoder: Decoder, pool: KvPool, taps: Sequence[int] = ()) -> None:
        self._decoder = decoder
        self._pool = pool
        self._taps = tuple(taps)
        self._memory = torch.cuda.graph_pool_handle()
        self._graphs: dict[tuple[int, int, int], _CapturedForward] = {}

    def __call__(self, rows: Sequence[RowInput]) -> RoundColumns:
        """Implements: DecodeForward."""
        columns = max(len(row.token_ids) for row in rows)
        longest = max(row.start + len(row.token_ids) for row in rows)
        key = (len(rows), columns, profile_pages(longest))
        packed = pack_rows(rows, columns, key[2])
        graph = self._graphs.get(key)
        if graph is None:
            graph = _CapturedForward(
                self._decoder, self._pool, packed, columns, self._taps, self._memory
            )
            self._graphs[key] = graph
        return graph.replay(packed)


def profile_pages(tokens: int) -> int:
    """Return the page places of the smallest profile that holds so many tokens."""
    pages = PROFILE_PAGES
    while pages * PAGE_TOKENS < tokens:
        pages *= 2
    return pages


class _CapturedForward:
    """One graph with its input and output buffers, which outlive it."""

    def __init__(
        self,
        decoder: Decoder,
        pool: KvPool,
        packed: Tensor,
        columns: int,
        taps: tuple[int, ...],
        memory: _POOL_HANDLE,
    ) -> None:
        self._staging = packed.pin_memory()
        self._input = self._staging.to(decoder.device)

        def forward() -> RoundColumns:
            states = decoder.states(paged_batch(self._input, columns), pool, taps)
            shape = (len(packed), columns, -1)
            logits = decoder.logits(states.hidden)
            return RoundColumns(logits.view(shape), states.features.view(shape))

        # Warm up on a side stream: libraries allocate workspaces there, not inside the capture.
        side = torch.cuda.Stream(decoder.device)  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream(decoder.device))
        with torch.cuda.stream(side):
            for _ in range(2):
                forward()
        torch.cuda.current_stream(decoder.device).wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, pool=memory):
            self._output = forward()
        self._recurrent = pool.recurrent
        self._records = None if pool.recurrent is None else pool.recurrent.records

    def replay(self, packed: Tensor) -> RoundColumns:
        """Run the graph over new inputs of the same shape."""
        self._staging.copy_(packed)
        self._input.copy_(self._staging, non_blocking=True)
        self._graph.replay()
        if self._recurrent is not None:
            self._recurrent.records = self._records
        return self._output
