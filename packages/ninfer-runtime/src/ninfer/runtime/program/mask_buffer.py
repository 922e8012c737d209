"""The packed masks of a round: one host buffer at a stable address, and its copy on the device.

Source: specification 7.1 and 7.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

import torch
from torch import Tensor

from ninfer.contract import InvalidMask, Lookahead, MaskProvider, mask_words

if TYPE_CHECKING:
    from typing_extensions import Buffer


class RoundMasks(NamedTuple):
    """What a provider said of every row; ``words`` int32[B, P, W] is None without constraints."""

    lookaheads: tuple[Lookahead | None, ...]
    words: Tensor | None

    def is_constrained(self, row: int) -> bool:
        """Return whether a row has a mask."""
        return self.lookaheads[row] is not None

    def is_dead(self, row: int, licensed_tokens: int) -> bool:
        """Return whether a dead end lies on a row's licensed path."""
        lookahead = self.lookaheads[row]
        return lookahead is not None and lookahead.is_dead_within(licensed_tokens)


class MaskBuffer:
    """Room for int32[B, P, W]; pinned where the device copies from it.

    Rows are packed by the longest proposal of their round, so that no more is copied than is read.
    """

    def __init__(self, rows: int, positions: int, token_domain: int, device: torch.device) -> None:
        self._words = mask_words(token_domain)
        on_host = device.type == "cpu"
        size = rows * positions * self._words
        self._host = torch.zeros(size, dtype=torch.int32, pin_memory=not on_host)
        self._device = self._host if on_host else torch.zeros_like(self._host, device=device)
        self._is_copied = not on_host

    @property
    def host_bytes(self) -> int:
        """Return the bytes of the host buffer."""
        return self._host.nbytes

    @property
    def device_bytes(self) -> int:
        """Return the bytes of the copy on the device; 0 where the host's buffer serves."""
        return self._device.nbytes if self._is_copied else 0

    def words(self, rows: int, positions: int) -> Tensor:
        """Return the words that a round of this shape reads, int32[B, P, W], at their address."""
        return self._part(self._device, rows, positions)

    def constrained(self, provider: MaskProvider | None, rows: int) -> list[int]:
        """Return the rows that have a mask."""
        if provider is None:
            return []
        return [row for row in range(rows) if provider.is_constrained(row)]

    def fill(
        self,
        provider: MaskProvider | None,
        drafts: Sequence[Sequence[int]],
        positions: int | None = None,
    ) -> RoundMasks:
        """Ask the provider once for the masks of all rows.

        Effects: a batch without constrained rows never calls ``provider.fill``. Rows have
                 ``positions`` places, or as many as the longest proposal needs; a copy to the
                 device is launched in one piece and not waited for.
        Raises:  InvalidMask — the answer contradicts what the provider said of its rows.
        """
        rows = len(drafts)
        constrained = self.constrained(provider, rows)
        if provider is None or not constrained:
            return RoundMasks((None,) * rows, None)
        positions = positions or 1 + max(map(len, drafts))
        words = self._part(self._host, rows, positions)
        lookaheads = tuple(provider.fill(drafts, memoryview(cast("Buffer", words.numpy()))))
        _check(lookaheads, drafts, constrained)
        found = self.words(rows, positions)
        if self._is_copied:
            found.copy_(words, non_blocking=True)
            for row in constrained:
                provider.uploaded(row, words[row].nbytes)
        return RoundMasks(lookaheads, found)

    def _part(self, buffer: Tensor, rows: int, positions: int) -> Tensor:
        return buffer[: rows * positions * self._words].view(rows, positions, self._words)


def _check(
    lookaheads: Sequence[Lookahead | None],
    drafts: Sequence[Sequence[int]],
    constrained: Sequence[int],
) -> None:
    if len(lookaheads) != len(drafts):
        raise InvalidMask(f"masks: {len(lookaheads)} lookaheads for {len(drafts)} rows")
    for row, lookahead in enumerate(lookaheads):
        if (lookahead is not None) != (row in constrained):
            raise InvalidMask(f"masks: row {row}: a lookahead where there is no mask, or none")
        if lookahead is not None and lookahead.positions <= len(drafts[row]):
            raise InvalidMask(f"masks: row {row}: {lookahead.positions} positions")
