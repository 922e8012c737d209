"""The forward pass of a decode round: eager on the CPU, captured graphs on CUDA.

Source: specification 9.1 and 9.3; graphs are per exact number of rows and per context profile, and
nothing of a request is part of one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

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

DecodeForward = Callable[[Sequence[RowInput]], Tensor]
"""Returns float32 logits of every column; rows have equally many columns."""


def decode_forward(decoder: Decoder, pool: KvPool) -> DecodeForward:
    """Return the way to run rounds on the decoder's device."""
    if decoder.device.type == "cuda":
        return GraphForward(decoder, pool)

    def eager(rows: Sequence[RowInput]) -> Tensor:
        return decoder.logits(decoder.forward(forward_batch(rows, pool), pool))

    return eager


class GraphForward:
    """Replays one captured graph per rows, columns and context profile, captured on first use.

    Effects: the returned logits are the graph's own buffer, valid until its next replay.
    """

    def __init__(self, decoder: Decoder, pool: KvPool) -> None:
        self._decoder = decoder
        self._pool = pool
        self._memory = torch.cuda.graph_pool_handle()
        self._graphs: dict[tuple[int, int, int], _CapturedForward] = {}

    def __call__(self, rows: Sequence[RowInput]) -> Tensor:
        """Return the logits of every column, float32[R · columns, vocab_rows]."""
        columns = len(rows[0].token_ids)
        longest = max(row.start for row in rows) + columns
        key = (len(rows), columns, profile_pages(longest))
        packed = pack_rows(rows, key[2])
        graph = self._graphs.get(key)
        if graph is None:
            graph = _CapturedForward(self._decoder, self._pool, packed, columns, self._memory)
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
        memory: _POOL_HANDLE,
    ) -> None:
        self._staging = packed.pin_memory()
        self._input = self._staging.to(decoder.device)

        def forward() -> Tensor:
            batch = paged_batch(self._input, columns)
            return decoder.logits(decoder.forward(batch, pool))

        # Warm up on a side stream: libraries allocate workspaces there, not inside the capture.
        side = torch.cuda.Stream(decoder.device)  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream(decoder.device))
        with torch.cuda.stream(side):
            for _ in range(2):
                forward()
        torch.cuda.current_stream(decoder.device).wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, pool=memory):
            self._logits = forward()

    def replay(self, packed: Tensor) -> Tensor:
        """Run the graph over new inputs of the same shape."""
        self._staging.copy_(packed)
        self._input.copy_(self._staging, non_blocking=True)
        self._graph.replay()
        return self._logits
