"""What a staged round is told: one buffer in host memory, one copy, tensors at stable addresses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ninfer.ops import SamplingBatch, SamplingRow
from ninfer.ops.batch import RECORD_BYTES

_RECORD_WORDS: Final = RECORD_BYTES // 8
_NUMBERS: Final = 7


class RowNumbers(NamedTuple):
    """The numbers of one row.

    Units: ``frontier`` and ``absorbed`` in columns, ``room`` in tokens that still fit the budget
           and the context; ``pending`` counts columns from ``absorbed`` on whose features wait.
    """

    anchor: int
    frontier: int
    extent: int
    room: int
    pool_row: int
    absorbed: int = 0
    pending: int = 0


class RoundRows(NamedTuple):
    """B rows of a round on the device.

    Shapes: sampling B records; int64[B] the numbers of ``RowNumbers``; drafts int64[B, K], which a
            row has from the last round; pages int64[B, L].
    """

    sampling: SamplingBatch
    anchors: Tensor
    frontiers: Tensor
    extents: Tensor
    rooms: Tensor
    pool_rows: Tensor
    absorbed: Tensor
    pending: Tensor
    drafts: Tensor
    pages: Tensor

    @property
    def row_count(self) -> int:
        """Return B."""
        return self.anchors.shape[0]


class RoundInput:
    """Room for the rows of the largest round; ``draft_limit`` drafts and ``pages`` pages a row."""

    def __init__(self, rows: int, draft_limit: int, pages: int, device: torch.device) -> None:
        self._drafts = slice(_NUMBERS, _NUMBERS + draft_limit)
        self._first_page = self._drafts.stop
        self._width = self._first_page + pages
        self._records = rows * _RECORD_WORDS
        on_host = device.type == "cpu"
        size = self._records + rows * self._width
        self._host = torch.zeros(size, dtype=torch.int64, pin_memory=not on_host)
        self._device = self._host if on_host else torch.zeros_like(self._host, device=device)
        numbers = self._host.numpy()
        self._record_table = numbers[: self._records].reshape(rows, _RECORD_WORDS)
        self._number_table = numbers[self._records :].reshape(rows, self._width)

    def write(
        self,
        row: int,
        sampling: SamplingRow,
        numbers: RowNumbers,
        drafts: Sequence[int],
        pages: Sequence[int],
    ) -> None:
        """Write one row; the last upload must have ended."""
        self._record_table[row] = np.frombuffer(sampling.to_bytes(), dtype=np.int64)
        table = self._number_table[row]
        table[:_NUMBERS] = numbers
        if drafts:
            table[_NUMBERS : _NUMBERS + len(drafts)] = drafts
        held = min(len(pages), self._width - self._first_page)
        table[self._first_page : self._first_page + held] = pages[:held]
        # Nothing is read there, but an address must be inside the pool.
        table[self._first_page + held :] = 0

    def upload(self, rows: int) -> None:
        """Send the first rows to the device, without waiting."""
        if self._device is not self._host:
            size = self._records + rows * self._width
            self._device[:size].copy_(self._host[:size], non_blocking=True)

    def rows(self, rows: int, pages: int) -> RoundRows:
        """Return the first rows on the device with so many page places."""
        first = self._records
        table = self._device[first : first + rows * self._width].view(rows, self._width)
        records = self._device[: rows * _RECORD_WORDS].view(rows, _RECORD_WORDS)
        anchors, frontiers, extents, rooms, pool_rows, absorbed, pending = (
            table[:, number] for number in range(_NUMBERS)
        )
        return RoundRows(
            SamplingBatch(records),
            anchors,
            frontiers,
            extents,
            rooms,
            pool_rows,
            absorbed,
            pending,
            table[:, self._drafts],
            table[:, self._first_page : self._first_page + pages],
        )
