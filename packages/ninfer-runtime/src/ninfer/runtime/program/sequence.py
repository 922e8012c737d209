"""The physical state of one resident sequence."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from ninfer.contract import SamplingParameters, SequenceId, SequenceRequest
from ninfer.runtime.models.kv_pool import SlotMap
from ninfer.runtime.program.draft_context import DraftContext
from ninfer.runtime.program.recurrent_checkpoints import Checkpoint


@dataclass(slots=True, eq=False)
class ResidentSequence:
    """Ledger, frontier and pages of one sequence.

    ``ledger`` holds the prompt and every committed token; the keys and values of its first
    ``frontier`` tokens are computed. Between rounds the last token, the anchor, is not.
    ``replay_end`` is the frontier that a replay must reach, 0 when there is none.
    ``final_hidden`` is the hidden state of the prompt's last token. ``draft`` is what a drafter
    keeps; without one nothing reads it. ``places`` are the token counts at which a prompt of a
    hybrid leaves ``checkpoints``, from which others may start.
    """

    sequence: SequenceId
    row: int
    request: SequenceRequest
    ledger: list[int]
    frontier: int
    pages: list[int]
    final_hidden: Tensor | None = None
    replay_end: int = 0
    draft: DraftContext = field(default_factory=DraftContext)
    places: tuple[int, ...] = ()
    checkpoints: dict[int, Checkpoint] = field(default_factory=dict)
    slots: SlotMap = field(init=False)

    def __post_init__(self) -> None:
        self.slots = SlotMap(self.pages)

    @property
    def sampling(self) -> SamplingParameters:
        """Return the request's parameters."""
        return self.request.sampling

    @property
    def prompt_tokens(self) -> int:
        """Return the tokens of the prompt."""
        return len(self.request.token_ids)

    @property
    def has_anchor(self) -> bool:
        """Return whether a sampled or forced token exists, from which decoding goes on."""
        return len(self.ledger) > self.prompt_tokens

    @property
    def anchor(self) -> int:
        """Return the last token of the ledger."""
        return self.ledger[-1]

    @property
    def is_replayed(self) -> bool:
        """Return whether no replay is left to do."""
        return self.frontier >= self.replay_end

    @property
    def is_decodable(self) -> bool:
        """Return whether everything before the anchor is computed."""
        return self.has_anchor and self.frontier == len(self.ledger) - 1

    def add_pages(self, pages: list[int]) -> None:
        """Append pages to the table."""
        if pages:
            self.pages = self.pages + pages
            self.slots = SlotMap(self.pages)
