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
    any change of the frontier drops them. ``is_stored`` features lie where the row's next round
    reads them.
    """

    absorbed: int = 0
    features: Tensor | None = None
    drafts: tuple[int, ...] = ()
    is_stored: bool = False

    @property
    def host_bytes(self) -> int:
        """Return the bytes of the features."""
        return 0 if self.features is None else self.features.nbytes

    def with_columns(self, features: Tensor) -> Tensor:
        """Return the held features and those of columns after them."""
        return features if self.features is None else torch.cat((self.features, features))

    def extend(self, features: Tensor, *, is_stored: bool = False) -> None:
        """Add committed columns, whose features are stored or the caller's to give away."""
        self.is_stored = is_stored and self.features is None
        self.features = self.with_columns(features)
        self.drafts = ()

    def restart(self, column: int, features: Tensor, drafts: tuple[int, ...]) -> None:
        """Note that the entries before a column are written, and take its stored features."""
        self.absorbed, self.features, self.drafts = column, features, drafts
        self.is_stored = True

    def absorb_to(self, column: int) -> None:
        """Note that the entries before a column are written now."""
        if self.features is not None:
            read, known = column - self.absorbed, len(self.features)
            # A copy, because a view would keep every column of its pass alive.
            self.features = self.features[read:].clone() if read < known else None
        self.is_stored = False
        self.absorbed = column

    def moved_to(self, device: torch.device) -> DraftContext:
        """Return the same context with its features in memory of their own on a device."""
        features = None if self.features is None else self.features.to(device, copy=True)
        return replace(self, features=features, is_stored=False)

    def without_drafts(self) -> DraftContext:
        """Return the context with its features in memory of their own, whatever text goes on."""
        features = None if self.features is None else self.features.clone()
        return DraftContext(self.absorbed, features)
