"""What the ops return."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ninfer.contract import RowMismatch
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
        """Copy ``other`` into these tensors and return them.

        Raises: RowMismatch — a tensor has another shape or dtype.
        """
        _copy("tokens", self.tokens, other.tokens)
        _copy("status", self.status, other.status)
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
        """Copy ``other`` into these tensors and return them.

        Raises: RowMismatch — a tensor has another shape or dtype.
        """
        _copy("tokens", self.tokens, other.tokens)
        _copy("accepted", self.accepted, other.accepted)
        _copy("status", self.status, other.status)
        return self

    def require_ok(self) -> None:
        """Raise for the first row that is not OK; waits for the device.

        Raises: ConstraintDeadEnd, NonFiniteLogits — see ``ninfer.ops.require_ok``.
        """
        for row, status in enumerate(self.status.tolist()):
            require_ok(status, row)


def _copy(name: str, out: Tensor, found: Tensor) -> None:
    # A copy would repeat one row for all, and convert what does not fit.
    if out.shape != found.shape or out.dtype != found.dtype:
        given, needed = (f"{t.dtype}{tuple(t.shape)}" for t in (out, found))
        raise RowMismatch(f"out {name}: {given}, not {needed}")
    out.copy_(found)
