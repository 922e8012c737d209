"""What a paused sequence owns while it has no row.

Source: specification 6.3; reference contract, section 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from ninfer.contract import ResumeRoute, SequenceRequest
from ninfer.runtime.models.kv_group import SavedGroup
from ninfer.runtime.program.draft_context import DraftContext


@dataclass(slots=True, eq=False)
class PausedSequence:
    """Implements: ResumeState; the ledger always, and for a SNAPSHOT the computed state.

    ``saved`` holds the first ``frontier`` tokens, None for a REPLAY; a restore is complete at
    ``goal_tokens``. RNG positions and penalty counts follow from the ledger. ``draft`` belongs to
    the computed state and lies in host memory.
    """

    request: SequenceRequest
    ledger: tuple[int, ...]
    frontier: int
    goal_tokens: int
    final_hidden: Tensor | None
    saved: SavedGroup | None
    draft: DraftContext = field(default_factory=DraftContext)

    @property
    def route(self) -> ResumeRoute:
        """Return the route a restore will take."""
        return ResumeRoute.REPLAY if self.saved is None else ResumeRoute.SNAPSHOT

    @property
    def host_bytes(self) -> int:
        """Return the bytes held in the host pool."""
        return 0 if self.saved is None else self.saved.host_bytes + self.draft.host_bytes

    def forget_state(self) -> None:
        """Drop the computed state; the ledger alone can still bring the sequence back."""
        self.saved = None
        self.draft = DraftContext()
