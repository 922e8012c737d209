"""What a decode round is, and the ordinary one: one column, one token a row."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from torch import Tensor

from ninfer.contract import MaskProvider, PendingRow, RngPurpose
from ninfer.runtime.program.decode_forward import DecodeForward
from ninfer.runtime.program.mask_buffer import MaskBuffer
from ninfer.runtime.program.resident_set import ResidentSet
from ninfer.runtime.program.sampler import Sampler
from ninfer.runtime.program.sequence import ResidentSequence


class RoundOutcome(NamedTuple):
    """Provisional rows, and the seconds spent on the device and on waiting for drafts."""

    rows: list[PendingRow]
    device_seconds: float
    draft_seconds: float = 0.0


class DecodeRound(Protocol):
    """Runs one round over rows that are ready to decode; see contract.Program.decode."""

    @property
    def columns(self) -> int:
        """Return how many slots after a frontier one round may write."""
        ...

    def run(
        self,
        residents: Sequence[ResidentSequence],
        remaining_tokens: Sequence[int],
        provider: MaskProvider | None,
    ) -> RoundOutcome:
        """Return what the rows produce; everything written lies beyond their frontiers."""
        ...


class OrdinaryRound:
    """Implements: DecodeRound; also chooses the first token after a prompt."""

    columns = 1

    def __init__(
        self, residents: ResidentSet, forward: DecodeForward, masks: MaskBuffer, sampler: Sampler
    ) -> None:
        self._residents = residents
        self._forward = forward
        self._masks = masks
        self._sampler = sampler

    def run(
        self,
        residents: Sequence[ResidentSequence],
        remaining_tokens: Sequence[int],
        provider: MaskProvider | None,
    ) -> RoundOutcome:
        """Implements: DecodeRound.run."""
        started = time.perf_counter()
        anchors = [[resident.anchor] for resident in residents]
        logits = self._forward(self._residents.new_columns(residents, anchors)).logits[:, 0]
        waited = time.perf_counter() - started
        rows = self.choose(residents, logits, provider, RngPurpose.DECODE)
        return RoundOutcome(rows, waited)

    def choose(
        self,
        residents: Sequence[ResidentSequence],
        logits: Tensor,
        provider: MaskProvider | None,
        purpose: RngPurpose,
    ) -> list[PendingRow]:
        """Fill the masks, on a device during the forward pass, and sample one token a row."""
        masks = self._masks.fill(provider, [()] * len(residents))
        tokens = self._sampler.sample(logits, residents, masks, purpose)
        return [
            PendingRow(resident.sequence, () if token is None else (token,), token is None)
            for resident, token in zip(residents, tokens, strict=True)
        ]
