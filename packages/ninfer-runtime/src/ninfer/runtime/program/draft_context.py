"""What a sequence holds for its drafter."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(slots=True, eq=False)
class DraftContext:
    """How far a drafter has read one sequence.

    The drafter's entries of the first ``absorbed`` columns are written. ``features`` [n, width]
    belong to the columns after them, up to the frontier. ``drafts`` continue the ledger as it is;
    any change of the frontier drops them.
    """

    absorbed: int = 0
    features: Tensor | None = None
    drafts: tuple[int, ...] = ()

    @property
    def host_bytes(self) -> int:
        """Return the bytes of the features."""
        return 0 if self.features is None else self.features.nbytes

    def with_columns(self, features: Tensor) -> Tensor:
        """Return the held features and those of columns after them."""
        return features if self.features is None else torch.cat((self.features, features))

    def extend(self, features: Tensor) -> None:
        """Add committed columns."""
        self.features = self.with_columns(features)
        self.drafts = ()

    def absorb_to(self, column: int) -> None:
        """Note that the entries before a column are written now."""
        if self.features is not None:
            # A copy, because a view would keep every column of its pass alive.
            self.features = self.features[column - self.absorbed :].clone()
        self.absorbed = column

    def moved_to(self, device: torch.device) -> DraftContext:
        """Return the same context with its features on a device."""
        features = None if self.features is None else self.features.to(device)
        return replace(self, features=features)
