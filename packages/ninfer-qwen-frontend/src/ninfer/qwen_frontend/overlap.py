"""How much of a text's end may still become the start of a pattern."""

from __future__ import annotations

from typing import AnyStr


def overlap(text: AnyStr, pattern: AnyStr) -> int:
    """Return the length of the longest suffix of ``text`` that is a proper prefix of ``pattern``.

    Math: max { n < len(pattern) : text ends with pattern[:n] }.
    """
    for length in range(min(len(text), len(pattern) - 1), 0, -1):
        if text.endswith(pattern[:length]):
            return length
    return 0
