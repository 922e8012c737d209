r"""Reads the smallest parts of an expression: characters, escapes, counts and classes.

Knows where it is, so that every refusal names its offset.
"""

from __future__ import annotations

from ninfer.contract.errors import InvalidRegex
from ninfer.contract.location import TextOffset
from ninfer.text.automata.characters import CharacterSet
from ninfer.text.regex.sets import NAMED

_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "v": "\v", "f": "\f"}
_IDENTITY = frozenset(r"^$\.*+?()[]{}|/-")
_REFUSED = {
    "b": r"the word boundary \b",
    "B": r"the word boundary \B",
    "p": r"the Unicode property class \p",
    "P": r"the Unicode property class \P",
    "c": r"the control escape \c",
    "k": r"the named backreference \k",
}
_HEX = frozenset("0123456789abcdefABCDEF")


def refuse(offset: int, fact: str) -> InvalidRegex:
    """Return the error of a place in the expression."""
    return InvalidRegex(fact, location=TextOffset(offset))


class Reader:
    """A cursor over an expression."""

    def __init__(self, text: str) -> None:
        for offset, character in enumerate(text):
            if "\ud800" <= character <= "\udfff":
                raise refuse(offset, "a lone surrogate is not a character")
        self.text = text
        self.offset = 0

    def peek(self, ahead: int = 0) -> str:
        """Return a coming character, or the empty string behind the end."""
        return self.text[self.offset + ahead : self.offset + ahead + 1]

    def take(self) -> str:
        """Return the next character and pass it."""
        self.offset += 1
        return self.text[self.offset - 1]

    def skip(self, expected: str) -> bool:
        """Pass a text if it comes next."""
        if self.text.startswith(expected, self.offset):
            self.offset += len(expected)
            return True
        return False

    def quantifier(self) -> tuple[int, int | None] | None:
        """Return the bounds of a quantifier, a lazy mark passed, or None where there is none.

        Raises: InvalidRegex — bounds are missing or reversed, or a quantifier follows.
        """
        start = self.offset
        bounds = self._bounds()
        if bounds is None:
            return None
        self.skip("?")
        low, high = bounds
        if high is not None and high < low:
            raise refuse(start, f"the upper bound {high} is below the lower bound {low}")
        if self.peek() in ("*", "+", "?", "{"):
            raise refuse(self.offset, "a quantifier follows a quantifier")
        return bounds

    def escape(self) -> CharacterSet:
        """Return what an escape outside a class means; the backslash comes next.

        Raises: InvalidRegex.
        """
        return self._escape(in_class=False)

    def character_class(self) -> CharacterSet:
        """Return a class; its opening bracket has been passed.

        Raises: InvalidRegex — the class is empty, open at the end, or has a reversed range.
        """
        start = self.offset - 1
        negated = self.skip("^")
        if self.peek() == "]":
            raise refuse(start, "the class is empty")
        ranges: list[tuple[int, int]] = []
        while not self.skip("]"):
            if not self.peek():
                raise refuse(start, "the class is not closed")
            ranges.extend(self._class_item().ranges)
        members = CharacterSet.of(ranges)
        return ~members if negated else members

    def _class_item(self) -> CharacterSet:
        start = self.offset
        low = self._class_atom()
        if self.peek() != "-" or self.peek(1) in ("]", ""):
            return low
        self.take()
        high = self._class_atom()
        if len(low) != 1 or len(high) != 1:
            return low | high | CharacterSet.single(ord("-"))
        first, last = low.ranges[0][0], high.ranges[0][0]
        if last < first:
            raise refuse(start, "the range is reversed")
        return CharacterSet.of([(first, last)])

    def _class_atom(self) -> CharacterSet:
        if self.peek() == "\\":
            return self._escape(in_class=True)
        return CharacterSet.single(ord(self.take()))

    def _escape(self, *, in_class: bool) -> CharacterSet:
        start = self.offset
        self.take()
        if not self.peek():
            raise refuse(start, "the expression ends in a backslash")
        letter = self.take()
        if letter in NAMED:
            return NAMED[letter]
        if letter == "b" and in_class:
            return CharacterSet.single(0x08)
        if letter in _REFUSED:
            raise refuse(start, f"{_REFUSED[letter]} is not supported")
        return CharacterSet.single(self._escaped_character(letter, start))

    def _escaped_character(self, letter: str, start: int) -> int:
        if letter in _CONTROLS:
            return ord(_CONTROLS[letter])
        if letter in _IDENTITY:
            return ord(letter)
        if letter == "x":
            return self._hexadecimal(2, start)
        if letter == "u":
            return self._unicode(start)
        if letter == "0" and self.peek() not in tuple("0123456789"):
            return 0
        if letter in "0123456789":
            raise refuse(start, f"the backreference or octal escape \\{letter} is not supported")
        raise refuse(start, f"the escape \\{letter} is unknown")

    def _unicode(self, start: int) -> int:
        if self.peek() == "{":
            raise refuse(start, r"the escape \u{...} is not supported; write the character")
        code = self._hexadecimal(4, start)
        if 0xD800 <= code <= 0xDFFF:
            raise refuse(start, "a surrogate escape is not a character; write the character")
        return code

    def _hexadecimal(self, digits: int, start: int) -> int:
        spelled = self.text[self.offset : self.offset + digits]
        if len(spelled) != digits or not _HEX.issuperset(spelled):
            raise refuse(start, f"the escape needs {digits} hexadecimal digits")
        self.offset += digits
        return int(spelled, 16)

    def _bounds(self) -> tuple[int, int | None] | None:
        match self.peek():
            case "*":
                bounds: tuple[int, int | None] = (0, None)
            case "+":
                bounds = (1, None)
            case "?":
                bounds = (0, 1)
            case "{":
                return self._braced_bounds()
            case _:
                return None
        self.take()
        return bounds

    def _braced_bounds(self) -> tuple[int, int | None]:
        start = self.offset
        self.take()
        low = self._count()
        high = low
        if low is not None and self.skip(","):
            high = None if self.peek() == "}" else self._count()
            if high is None and self.peek() != "}":
                low = None
        if low is None or not self.skip("}"):
            raise refuse(start, "a brace that is no {m}, {m,} or {m,n} must be escaped")
        return low, high

    def _count(self) -> int | None:
        start = self.offset
        while self.peek() and self.peek() in "0123456789":
            self.take()
        if self.offset - start > 9:
            raise refuse(start, "the repetition count is too large")
        return int(self.text[start : self.offset]) if self.offset > start else None
