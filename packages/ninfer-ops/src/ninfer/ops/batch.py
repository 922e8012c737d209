"""The packed sampling parameters of a batch: one 64-byte record a row.

One small buffer is uploaded a round, at a stable address, whatever the requests ask for.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from ninfer.contract import RngPurpose, RowMismatch, SamplingParameters
from ninfer.ops.rng import POSITION_LIMIT

RECORD_BYTES: Final = 64
_RECORD: Final = struct.Struct("<QqdddffiiII")
_CONSTRAINED: Final = 1
_PENALISED: Final = 2


@dataclass(frozen=True, slots=True)
class SamplingRow:
    """How one row is sampled in this round.

    Units: ``position`` is the logical position of the next token for an ordinary step, and the
    ledger length before the round for speculative acceptance. ``counts_row`` is the row of the
    count table that holds this request's generated tokens; it matters only with a penalty.
    Raises: RowMismatch — a position outside [0, 2**40), a negative row.
    """

    parameters: SamplingParameters
    position: int
    purpose: RngPurpose = RngPurpose.DECODE
    constrained: bool = False
    counts_row: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.position < POSITION_LIMIT:
            raise RowMismatch(f"sampling row: the position {self.position} is not below 2**40")
        if not 0 <= self.counts_row < 1 << 31:
            raise RowMismatch(f"sampling row: {self.counts_row} is no row of a count table")

    @property
    def is_penalised(self) -> bool:
        """Return whether a penalty changes the logits of this row."""
        return self.parameters.presence_penalty != 0 or self.parameters.frequency_penalty != 0

    def to_bytes(self) -> bytes:
        """Return the record of this row.

        Shapes: little endian u64 seed; i64 position; f64 temperature, top_p, min_p; f32 presence,
                frequency; i32 candidate limit, purpose; u32 flags (bit 0 constrained, bit 1
                penalised), counts row.
        """
        chosen = self.parameters
        flags = _CONSTRAINED * self.constrained | _PENALISED * self.is_penalised
        return _RECORD.pack(
            chosen.seed,
            self.position,
            chosen.temperature,
            chosen.top_p,
            chosen.min_p,
            chosen.presence_penalty,
            chosen.frequency_penalty,
            1 if chosen.is_greedy else chosen.candidate_limit,
            self.purpose,
            flags,
            self.counts_row,
        )


@dataclass(frozen=True, slots=True)
class SamplingBatch:
    """The records of a batch.

    Shapes: records int64[B, 8], C-contiguous, host or device; see ``SamplingRow.to_bytes``.
    """

    records: Tensor

    @classmethod
    def pack(cls, rows: Sequence[SamplingRow], device: torch.device | str = "cpu") -> SamplingBatch:
        """Return a new batch of these rows on ``device``."""
        batch = cls.empty(len(rows), device)
        batch.write(rows)
        return batch

    @classmethod
    def empty(
        cls, rows: int, device: torch.device | str = "cpu", *, pinned: bool = False
    ) -> SamplingBatch:
        """Return room for ``rows`` records whose address never changes."""
        shape = (rows, RECORD_BYTES // 8)
        return cls(torch.zeros(shape, dtype=torch.int64, device=device, pin_memory=pinned))

    def write(self, rows: Sequence[SamplingRow]) -> None:
        """Store the records of the first ``len(rows)`` rows.

        Raises: RowMismatch — more rows than there is room for.
        """
        if len(rows) > self.rows:
            raise RowMismatch(f"sampling batch: {len(rows)} rows, room for {self.rows}")
        if rows:
            packed = bytearray(b"".join(row.to_bytes() for row in rows))
            view = torch.frombuffer(packed, dtype=torch.int64).view(len(rows), -1)
            self.records[: len(rows)].copy_(view)

    def first(self, rows: int) -> SamplingBatch:
        """Return a view of the first ``rows`` records."""
        return SamplingBatch(self.records[:rows])

    @property
    def rows(self) -> int:
        """Return B."""
        return int(self.records.shape[0])

    @property
    def seeds(self) -> Tensor:
        """Return the seeds' bit patterns, int64[B]."""
        return self.records[:, 0]

    @property
    def positions(self) -> Tensor:
        """Return the logical positions, int64[B]."""
        return self.records[:, 1]

    @property
    def temperatures(self) -> Tensor:
        """Return the temperatures, float64[B]."""
        return self._doubles[:, 2]

    @property
    def top_p(self) -> Tensor:
        """Return the nucleus masses, float64[B]."""
        return self._doubles[:, 3]

    @property
    def min_p(self) -> Tensor:
        """Return the smallest weights relative to the best, float64[B]."""
        return self._doubles[:, 4]

    @property
    def presence(self) -> Tensor:
        """Return the presence penalties, float32[B]."""
        return self.records.view(torch.float32)[:, 10]

    @property
    def frequency(self) -> Tensor:
        """Return the frequency penalties, float32[B]."""
        return self.records.view(torch.float32)[:, 11]

    @property
    def limits(self) -> Tensor:
        """Return how many candidates each row keeps, int32[B], 1 for greedy rows."""
        return self._words[:, 12]

    @property
    def purposes(self) -> Tensor:
        """Return the RNG purposes, int32[B]."""
        return self._words[:, 13]

    @property
    def constrained(self) -> Tensor:
        """Return which rows have a mask, bool[B]."""
        return (self._words[:, 14] & _CONSTRAINED) != 0

    @property
    def penalised(self) -> Tensor:
        """Return which rows have a penalty, bool[B]."""
        return (self._words[:, 14] & _PENALISED) != 0

    @property
    def counts_rows(self) -> Tensor:
        """Return each row's place in the count table, int32[B]."""
        return self._words[:, 15]

    @property
    def _doubles(self) -> Tensor:
        return self.records.view(torch.float64)

    @property
    def _words(self) -> Tensor:
        return self.records.view(torch.int32)
