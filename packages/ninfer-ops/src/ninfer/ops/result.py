"""What the ops return."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from ninfer.ops.status import require_ok


class SampledTokens(NamedTuple):
    """One token a row.

    Shapes: tokens int64[B]; status int32[B] of RowStatus. A row whose status is not OK holds the
            placeholder token, which must not be committed.
    """

    tokens: Tensor
    status: Tensor

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
