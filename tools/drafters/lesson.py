"""One batch with what the target makes of it, which all drafters of a run learn from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor
from torch.nn import functional

from drafters.corpus import Batch
from drafters.target import Target


class Lesson(NamedTuple):
    """Dialogues and the target's states over them.

    Shapes: tokens int64[B, T]; answered bool[B, T], where an answer's token stands; is_json
            bool[B]; hidden [B, T, H] after the final norm; streams [B, T, taps · H], empty
            without taps.
    """

    tokens: Tensor
    answered: Tensor
    is_json: Tensor
    hidden: Tensor
    streams: Tensor

    @classmethod
    def of(cls, batch: Batch, target: Target, taps: Sequence[int]) -> Lesson:
        """Run the target over a batch."""
        hidden, streams = target.states(batch.tokens, taps)
        return cls(*batch, hidden, hidden[..., :0] if streams is None else streams)

    def padded(self, columns: int) -> Lesson:
        """Return the same with that many empty columns behind it."""
        return self._replace(
            tokens=functional.pad(self.tokens, (0, columns)),
            answered=functional.pad(self.answered, (0, columns)),
            hidden=functional.pad(self.hidden, (0, 0, 0, columns)),
            streams=functional.pad(self.streams, (0, 0, 0, columns)),
        )
