"""Masks of any language given as a function, along drafts: what a provider owes a program."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ninfer.contract import Lookahead, mask_bit

Language = Callable[[tuple[int, ...]], Collection[int]]
"""The tokens that may follow a text; none is a dead end."""


class LanguageMasks:
    """Implements contract.MaskProvider on the CPU; ``prefixes`` are the rows' committed texts."""

    def __init__(
        self, languages: Sequence[Language | None], prefixes: Sequence[Sequence[int]]
    ) -> None:
        self._languages = languages
        self._prefixes = prefixes
        self.illegal = 0

    def is_constrained(self, row: int) -> bool:
        return self._languages[row] is not None

    def uploaded(self, row: int, byte_count: int) -> None:
        raise AssertionError("nothing is uploaded on the CPU")

    def fill(self, drafts: Sequence[Sequence[int]], masks: memoryview) -> list[Lookahead | None]:
        return [
            None if language is None else self._fill_row(language, row, drafts[row], masks)
            for row, language in enumerate(self._languages)
        ]

    def _fill_row(
        self, language: Language, row: int, drafts: Sequence[int], masks: memoryview
    ) -> Lookahead:
        text = tuple(self._prefixes[row])
        reachable, dead_ends, filled = 1, 0, 0
        for position in range(len(drafts) + 1):
            is_reached = position == reachable - 1
            allowed = language((*text, *drafts[:position])) if is_reached else ()
            _write(masks, row, position, allowed or (0,))
            if not is_reached:
                continue
            filled += bool(allowed)
            if not allowed:
                dead_ends |= 1 << position
            elif position < len(drafts):
                is_legal = drafts[position] in allowed
                reachable += is_legal
                self.illegal += not is_legal
        return Lookahead(len(drafts) + 1, reachable, dead_ends, filled)


def _write(masks: memoryview, row: int, position: int, allowed: Collection[int]) -> None:
    assert masks.shape is not None
    words = [0] * masks.shape[2]
    for token in allowed:
        word, bit = mask_bit(token)
        words[word] |= bit
    for word, value in enumerate(words):
        masks[row, position, word] = value - (value >> 31 << 32)
