"""Recurrent states of a hybrid model at token counts from which other sequences may start.

A recurrent state stands for one whole prefix, so a copy is kept at every count that is worth it.
Source: reference contract, section 1; docs/decisions/0012.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from torch import Tensor

from ninfer.runtime.models.state_slots import StateSlots
from ninfer.runtime.program.draft_context import DraftContext


@dataclass(slots=True, eq=False)
class Checkpoint:
    """The states after the first ``tokens`` tokens of a text.

    ``draft`` is what a drafter had read by then, with the features it still needs.
    ``final_hidden`` is the hidden state of the last token where the text is a whole prompt, which
    can sample from it. ``slot`` is None once the copy gave way to a newer one. Several prefixes
    and sequences may own a checkpoint.
    """

    tokens: int
    draft: DraftContext
    final_hidden: Tensor | None
    slot: int | None
    owners: int = field(default=1)

    @property
    def is_kept(self) -> bool:
        """Return whether a sequence can start here."""
        return self.slot is not None

    @property
    def can_sample(self) -> bool:
        """Return whether a prompt that ends here has nothing left to compute."""
        return self.final_hidden is not None


class RecurrentCheckpoints:
    """Checkpoints in order of use, in the slots of one byte budget."""

    def __init__(self, slots: StateSlots) -> None:
        self._slots = slots
        self._free = list(reversed(range(slots.slots)))
        self._by_use: dict[Checkpoint, None] = {}

    @property
    def capacity(self) -> int:
        """Return how many can be kept; 0 turns them off."""
        return self._slots.slots

    @property
    def kept(self) -> int:
        """Return how many are kept now."""
        return len(self._by_use)

    def take(
        self, row: int, tokens: int, draft: DraftContext, final_hidden: Tensor | None
    ) -> Checkpoint:
        """Copy the states of a row, which stand after so many tokens; the caller owns the result.

        Effects: the one unused for longest gives way where there is no slot.
        Assumes: the capacity is not 0.
        """
        if not self._free:
            self._let_go(next(iter(self._by_use)))
        slot = self._free.pop()
        self._slots.save(row, slot)
        checkpoint = Checkpoint(tokens, draft, final_hidden, slot)
        self._by_use[checkpoint] = None
        return checkpoint

    def restore(self, checkpoint: Checkpoint, row: int) -> None:
        """Write a kept checkpoint's states to a row and mark it as used now."""
        assert checkpoint.slot is not None
        self._slots.restore(checkpoint.slot, row)
        del self._by_use[checkpoint]
        self._by_use[checkpoint] = None

    def hold(self, checkpoints: Iterable[Checkpoint]) -> None:
        """Add an owner to each."""
        for checkpoint in checkpoints:
            checkpoint.owners += 1

    def forget(self, checkpoints: Iterable[Checkpoint]) -> None:
        """Take an owner from each; the slots of those without any are free."""
        for checkpoint in checkpoints:
            checkpoint.owners -= 1
            if not checkpoint.owners and checkpoint.is_kept:
                self._let_go(checkpoint)

    def _let_go(self, checkpoint: Checkpoint) -> None:
        assert checkpoint.slot is not None
        self._free.append(checkpoint.slot)
        checkpoint.slot = None
        del self._by_use[checkpoint]
