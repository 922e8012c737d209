"""What the ops return."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ninfer.ops.status import require_ok


class SampledTokens(NamedTuple):
    """One token a row.

    Shapes: tokens int64[B]; status int32[B] of RowStatus. A row whose status is not OK holds the
            placeholder token, which must not be committed.
    """

    tokens: Tensor
    status: Tensor

    @classmethod
    def empty(cls, rows: int, device: torch.device | str) -> SampledTokens:
        """Return unwritten room for ``rows`` rows."""
        return cls(
            torch.empty(rows, dtype=torch.int64, device=device),
            torch.empty(rows, dtype=torch.int32, device=device),
        )

    def store(self, other: SampledTokens) -> SampledTokens:
        """Copy ``other`` into these tensors and return them."""
        self.tokens.copy_(other.tokens)
        self.status.copy_(other.status)
        return self

    def require_ok(self) -> None:
        """Raise for the first row that is not OK; waits for the device.

        Raises: ConstraintDeadEnd, NonFiniteLogits — see ``ninfer.ops.require_ok``.
        """
        for row, status in enumerate(self.status.tolist()):
            require_ok(status, row)


class AcceptedTokens(NamedTuple):
    """The licensed tokens of a speculative round.

    Shapes: tokens int64[B, P], accepted drafts, then the correction or bonus, then zeros;
            accepted int32[B], how many drafts were accepted; status int32[B] of RowStatus, of the
            columns really taken. A row whose status is not OK licenses nothing.
    """

    tokens: Tensor
    accepted: Tensor
    status: Tensor

    @classmethod
    def empty(cls, rows: int, positions: int, device: torch.device | str) -> AcceptedTokens:
        """Return unwritten room for ``rows`` rows of ``positions`` tokens."""
        return cls(
            torch.empty((rows, positions), dtype=torch.int64, device=device),
            torch.empty(rows, dtype=torch.int32, device=device),
            torch.empty(rows, dtype=torch.int32, device=device),
        )

    def store(self, other: AcceptedTokens) -> AcceptedTokens:
        """Copy ``other`` into these tensors and return them."""
        self.tokens.copy_(other.tokens)
        self.accepted.copy_(other.accepted)
        self.status.copy_(other.status)
        return self

    def require_ok(self) -> None:
        """Raise for the first row that is not OK; waits for the device.

        Raises: ConstraintDeadEnd, NonFiniteLogits — see ``ninfer.ops.require_ok``.
        """
        for row, status in enumerate(self.status.tolist()):
            require_ok(status, row)
