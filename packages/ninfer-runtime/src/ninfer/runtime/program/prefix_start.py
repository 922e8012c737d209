"""From which token of a text that is partly computed a sequence may start.

Keys and values serve from any token on; recurrent states only where a checkpoint is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from torch import Tensor

from ninfer.runtime.program.draft_context import DraftContext
from ninfer.runtime.program.prefix_cache import CachedPrefix, PrefixMatch
from ninfer.runtime.program.recurrent_checkpoints import Checkpoint


class PrefixStart(NamedTuple):
    """The first ``tokens`` of a sequence, taken from a prefix; without one, nothing.

    ``final_hidden`` is known where the sequence samples at once.
    """

    tokens: int
    draft: DraftContext
    prefix: CachedPrefix | None = None
    final_hidden: Tensor | None = None
    checkpoint: Checkpoint | None = None

    @classmethod
    def nowhere(cls, tokens: int = 0) -> PrefixStart:
        """Return the start of a sequence that takes nothing from others."""
        return cls(tokens, DraftContext(tokens))


class StartRule(Protocol):
    """Says where a sequence may start on top of a prefix."""

    def start(self, match: PrefixMatch, wanted_tokens: int, *, samples: bool) -> PrefixStart:
        """Return the latest start of a text of so many tokens.

        A text that ``samples`` at its end computes its last token, unless the hidden state there
        is known.
        """
        ...


class AnyToken:
    """Implements: StartRule for a model without recurrent states.

    ``lookahead`` is how many tokens after a column a drafter's entry depends on; entries that
    depend on what differs are of no use.
    """

    def __init__(self, lookahead: int) -> None:
        self._lookahead = lookahead

    def start(self, match: PrefixMatch, wanted_tokens: int, *, samples: bool) -> PrefixStart:
        """Implements: StartRule.start."""
        entries = match.shared_tokens - self._lookahead
        hidden = None
        if samples and match.shared_tokens == wanted_tokens:
            hidden = match.prefix.final_hidden.get(wanted_tokens)
        if hidden is None:
            tokens = max(min(entries, wanted_tokens - samples), 0)
            return PrefixStart(tokens, DraftContext(tokens), match.prefix)
        features = hidden.unsqueeze(0) if self._lookahead else None
        draft = DraftContext(entries, features)
        return PrefixStart(wanted_tokens, draft, match.prefix, hidden)


class AtCheckpoint:
    """Implements: StartRule for a model with recurrent states.

    A checkpoint keeps the features that a drafter's last entries still need, so that these do not
    depend on what comes after it.
    """

    def start(self, match: PrefixMatch, wanted_tokens: int, *, samples: bool) -> PrefixStart:
        """Implements: StartRule.start."""
        usable = [
            checkpoint
            for checkpoint in match.prefix.kept_checkpoints
            if checkpoint.tokens <= match.shared_tokens
            and (checkpoint.tokens < wanted_tokens or checkpoint.can_sample or not samples)
        ]
        if not usable:
            return PrefixStart.nowhere()
        best = max(usable, key=lambda checkpoint: checkpoint.tokens)
        hidden = best.final_hidden if samples and best.tokens == wanted_tokens else None
        return PrefixStart(best.tokens, replace(best.draft), match.prefix, hidden, best)


def latest_start(
    rule: StartRule, matches: Sequence[PrefixMatch], wanted_tokens: int, *, samples: bool
) -> PrefixStart:
    """Return the latest start that one of several prefixes allows, if any does."""
    starts = [rule.start(match, wanted_tokens, samples=samples) for match in matches]
    best = max(
        starts, key=lambda s: (s.tokens, s.final_hidden is not None), default=PrefixStart.nowhere()
    )
    return best if best.tokens else PrefixStart.nowhere()
