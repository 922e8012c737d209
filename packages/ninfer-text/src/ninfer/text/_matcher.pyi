"""The position of one answer in a compiled grammar, and the masks of a round.

One transaction at a time: between calls a matcher is at its committed position or holds one
unresolved preview. No Python object and no interpreter lock inside the loops.
"""

from collections.abc import Sequence
from typing import final

from ninfer.contract.mask import Lookahead
from ninfer.text._core import CompiledGrammar

@final
class Matcher:
    """Implements ``ninfer.contract.TokenMatcher`` over a shared grammar.

    Effects: one caller at a time; its memory grows with the tokens committed.
    """

    def __init__(self, grammar: CompiledGrammar) -> None: ...
    @property
    def grammar(self) -> CompiledGrammar:
        """Return the shared grammar."""

    @property
    def token_domain(self) -> int:
        """Return V."""

    @property
    def mask_words(self) -> int:
        """Return W, the int32 words of one position."""

    @property
    def mask_positions(self) -> int:
        """Return how many masks were really filled; placeholders do not count."""

    @property
    def mask_seconds(self) -> float:
        """Return the time spent filling masks, also those of positions never reached."""

    @property
    def matcher_seconds(self) -> float:
        """Return the time spent advancing and going back, also where it was undone."""

    @property
    def can_end(self) -> bool:
        """Return whether the text up to the current position is a whole word of the language.

        Raises: RollbackFailed, IntegrityError.
        """

    @property
    def terminated(self) -> bool:
        """Return whether EOS was accepted, provisionally or not."""

    def lookahead(self, drafts: Sequence[int], masks: memoryview) -> Lookahead:
        """Write the allowed set of every position reachable along ``drafts``.

        Math:    masks[i] = allowed(committed + drafts[:i]) for 0 <= i <= len(drafts).
        Shapes:  drafts int[K'], K' <= 63, any 64-bit value; masks int32[P, W], P > K', C-contiguous
                 and writable, host memory, any object with the buffer protocol.
        Effects: masks[:K'+1] written. The first illegal draft leaves its own position READY and the
                 later ones UNREACHABLE, as does an EOS; a position without a legal token is
                 DEAD_END. Both hold the placeholder. The matcher is back at its mark on every exit.
        Raises:  PendingPreview — an unresolved preview exists; InvalidMask — shape, type or number
                 of drafts; RollbackFailed; IntegrityError — the core contradicts itself, or another
                 thread is inside; what the owner of ``masks`` raises where they are not contiguous
                 or not writable.
        Source:  specification 7.2 and 8.1.
        """

    def preview(self, tokens: Sequence[int]) -> int:
        """Advance provisionally; return how many tokens were taken before one was refused.

        Effects: stops after an accepted EOS; the taken prefix stays provisional, and the preview
                 stays unresolved even where nothing was taken.
        Raises:  PendingPreview; IntegrityError — the core fails, and the matcher is back at its
                 mark.
        """

    def commit(self) -> None:
        """Confirm the preview; allocates nothing, checks nothing, cannot fail."""

    def discard(self) -> None:
        """Return to the mark before the preview; without a preview nothing happens.

        Raises: RollbackFailed.
        """

    def feed(self, text: bytes) -> int:
        """Advance by bytes at the start of a request; return how many bytes were taken.

        Effects: the taken bytes are committed.
        Raises:  PendingPreview; IntegrityError.
        """

def lookahead_batch(
    matchers: Sequence[Matcher | None],
    drafts: Sequence[Sequence[int]],
    masks: memoryview,
    threads: int = 1,
) -> list[Lookahead | None]:
    """Do the lookahead of every row of a round in one call.

    Shapes:  masks int32[B, P, W] with B >= len(matchers) and P > len(drafts[b]) for each row.
    Units:   ``threads`` native threads share the rows; 1 stays on the caller's.
    Effects: rows without a matcher are untouched and come back as None; every row goes by its own
             number of drafts; all matchers are back at their marks on every exit.
    Raises:  RowMismatch — as many draft rows as matchers are needed; and per row what
             ``Matcher.lookahead`` raises, after every row is back at its mark.
    """
