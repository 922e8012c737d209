r"""How texts, classes and token lists are written in the core's EBNF.

Every escape has a fixed width, because the core lets ``\xNN`` swallow following hex digits; NUL is
written as a class, because the core's literals refuse it; a negated class names the surrogates,
because it would admit their bytes otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from ninfer.text.automata.characters import SURROGATES, CharacterSet

_NUL = r"[\u0000\u0000]"
"""NUL twice in a class: where the core is handed a parsed grammar, a class of one character becomes
a literal, and a literal loses its NUL."""

_PLAIN = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 !#$%&'()*+,./:;<=>?@_`{|}~"
)


def spell_text(text: str) -> str:
    """Return the elements that match exactly ``text``."""
    if not text:
        return '""'
    return " ".join(_spell_pieces(text))


def spell_class(members: CharacterSet) -> str:
    """Return the class of a set; the empty set is the class that nothing matches."""
    if members.ranges == ((0, 0),):
        return _NUL
    return "[" + "".join(_spell_range(low, high) for low, high in members.ranges) + "]"


def spell_negated(members: CharacterSet) -> str:
    """Return the class of a set as everything else negated, which the core counts in one state."""
    others = sorted([*(~members).ranges, SURROGATES])
    return "[^" + "".join(_spell_range(low, high) for low, high in others) + "]"


def spell_tokens(ids: Iterable[int], *, excluded: bool = False) -> str:
    """Return a token terminal."""
    name = "ExcludeToken" if excluded else "Token"
    return f"{name}({', '.join(map(str, ids))})"


def _spell_pieces(text: str) -> Iterator[str]:
    for is_nul, run in groupby(text, key=lambda c: c == "\0"):
        if is_nul:
            yield from (_NUL for _ in run)
        else:
            yield '"' + "".join(map(_spell_character, run)) + '"'


def _spell_range(low: int, high: int) -> str:
    first = _spell_character(chr(low))
    if low == high:
        return first
    return f"{first}{'-' if high > low + 1 else ''}{_spell_character(chr(high))}"


def _spell_character(character: str) -> str:
    if character in _PLAIN:
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
