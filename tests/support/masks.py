"""Masks as buffers and as sets of token ids."""

from __future__ import annotations

from collections.abc import Sequence

from ninfer.contract import Lookahead
from ninfer.text import Matcher

PLACEHOLDER = frozenset({0})


def mask_buffer(*axes: int, fill: int = 0) -> memoryview:
    """Return an int32 buffer of the given axes; the last one counts words."""
    count = 1
    for axis in axes:
        count *= axis
    return memoryview(bytearray([fill] * (4 * count))).cast("i", axes)


def tokens_of(masks: memoryview, *position: int) -> frozenset[int]:
    """Return the ids whose bits are set at one position of a buffer."""
    words = masks.shape[-1]
    start = 0
    for index, axis in zip(position, masks.shape, strict=False):
        start = start * axis + index
    row = masks.cast("B")[4 * words * start : 4 * words * (start + 1)]
    return frozenset(
        8 * number + bit for number, byte in enumerate(row) if byte for bit in _BITS[byte]
    )


_BITS = [[bit for bit in range(8) if byte >> bit & 1] for byte in range(256)]


def masks_along(
    matcher: Matcher, drafts: Sequence[int] = ()
) -> tuple[Lookahead, list[frozenset[int]]]:
    """Return the lookahead and the allowed set of every position along the drafts."""
    masks = mask_buffer(len(drafts) + 1, matcher.mask_words, fill=0xA5)
    found = matcher.lookahead(drafts, masks)
    return found, [tokens_of(masks, position) for position in range(len(drafts) + 1)]


def allowed_tokens(matcher: Matcher) -> frozenset[int]:
    """Return the ids allowed at the committed position; empty at a dead end and after the end."""
    found, masks = masks_along(matcher)
    return masks[0] if found.reachable and not found.dead_ends else frozenset()


def taken_tokens(matcher: Matcher) -> frozenset[int]:
    """Return the ids that the matcher takes when each is tried; its position stays."""
    taken = set()
    for token in range(32 * matcher.mask_words):
        if matcher.preview([token]) == 1:
            taken.add(token)
        matcher.discard()
    return frozenset(taken)


def advance(matcher: Matcher, tokens: Sequence[int]) -> None:
    """Commit tokens that must all be legal."""
    taken = matcher.preview(tokens)
    assert taken == len(tokens), f"token {tokens[taken]} at {taken} is refused"
    matcher.commit()
