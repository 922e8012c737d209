"""Finished prompts and answers whose keys and values are kept for a later prompt.

Holds model state only: no matcher, no choice of any token, nothing of a request.
Source: specification 6.3 and 13.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from torch import Tensor

from ninfer.runtime.program.recurrent_checkpoints import Checkpoint

Tokens = npt.NDArray[np.int64]


@dataclass(slots=True, eq=False)
class CachedPrefix:
    """Tokens whose keys and values lie in ``pages``.

    ``final_hidden`` maps a prompt length to the hidden state of its last token, from which a
    prompt of exactly those tokens samples without computing anything. A hybrid has ``checkpoints``
    instead, by their token counts. A drafter's entries of the first ``entries`` tokens lie in the
    pages as well.
    """

    tokens: Tokens
    pages: list[int]
    final_hidden: dict[int, Tensor]
    entries: int = field(default=0)
    checkpoints: dict[int, Checkpoint] = field(default_factory=dict)
    last_used: int = field(default=0)

    @property
    def kept_checkpoints(self) -> list[Checkpoint]:
        """Return the checkpoints that did not give way."""
        return [checkpoint for checkpoint in self.checkpoints.values() if checkpoint.is_kept]

    def inherit(self, other: CachedPrefix) -> None:
        """Take over what another prefix of the same text, as far as both go, knows besides pages.

        A checkpoint stays with the other one where a drafter would miss entries in these pages.
        """
        self.final_hidden = other.final_hidden | self.final_hidden
        for checkpoint in other.kept_checkpoints:
            place = checkpoint.tokens
            known = self.checkpoints.get(place)
            is_better = known is None or not known.is_kept or checkpoint.can_sample
            if is_better and checkpoint.draft.absorbed <= self.entries:
                self.checkpoints[place] = other.checkpoints.pop(place)
                if known is not None:
                    other.checkpoints[place] = known


class PrefixMatch(NamedTuple):
    """A cached or live prefix of a text and how many tokens they share."""

    prefix: CachedPrefix
    shared_tokens: int


class PrefixCache:
    """Cached prefixes in order of use; each owns its pages until it is evicted."""

    def __init__(self) -> None:
        self._prefixes: list[CachedPrefix] = []
        self._clock = 0

    @property
    def pages(self) -> int:
        """Return the pages of all prefixes."""
        return sum(len(prefix.pages) for prefix in self._prefixes)

    def __iter__(self) -> Iterator[CachedPrefix]:
        return iter(self._prefixes)

    def matches(
        self, token_ids: Sequence[int], live: Sequence[CachedPrefix] = ()
    ) -> list[PrefixMatch]:
        """Return every prefix that shares tokens with a text.

        ``live`` are prefixes of running sequences, which are not cached but can be copied.
        """
        wanted = np.asarray(token_ids, dtype=np.int64)
        return [
            PrefixMatch(prefix, shared)
            for prefix in (*self._prefixes, *live)
            if (shared := shared_tokens(prefix.tokens, wanted))
        ]

    def touch(self, prefix: CachedPrefix) -> None:
        """Mark a prefix as used now."""
        self._clock += 1
        prefix.last_used = self._clock

    def keep(self, prefix: CachedPrefix) -> list[CachedPrefix]:
        """Take a prefix over and return those it makes superfluous, which are no longer cached.

        Effects: their final hidden states and checkpoints move to the new prefix; if an older
                 prefix already covers the new one, the new one itself is returned.
        """
        for older in self._prefixes:
            if shared_tokens(older.tokens, prefix.tokens) == len(prefix.tokens):
                older.inherit(prefix)
                self.touch(older)
                return [prefix]
        covered = [
            older
            for older in self._prefixes
            if shared_tokens(older.tokens, prefix.tokens) == len(older.tokens)
        ]
        for older in covered:
            prefix.inherit(older)
            self._prefixes.remove(older)
        self._prefixes.append(prefix)
        self.touch(prefix)
        return covered

    def remove(self, prefix: CachedPrefix) -> CachedPrefix:
        """Take a prefix out and return it; its pages are the caller's."""
        self._prefixes.remove(prefix)
        return prefix

    def oldest(self, *, spare: CachedPrefix | None = None) -> CachedPrefix | None:
        """Return the prefix unused for longest, other than ``spare``."""
        others = [prefix for prefix in self._prefixes if prefix is not spare]
        return min(others, key=lambda prefix: prefix.last_used, default=None)

    def owner_of(self, page: int) -> CachedPrefix | None:
        """Return the prefix that owns a page."""
        return next((prefix for prefix in self._prefixes if page in prefix.pages), None)


def shared_tokens(left: Tokens, right: Tokens) -> int:
    """Return the length of the longest common prefix."""
    length = min(len(left), len(right))
    differs = left[:length] != right[:length]
    return int(differs.argmax()) if differs.any() else length
