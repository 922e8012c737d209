"""Reads the tokens of a GBNF text: names, literals, classes, counts; skips blanks and comments.

Knows where it is, so that every refusal names its line and column.
"""

from __future__ import annotations

import re

from ninfer.contract.errors import InvalidGrammar
from ninfer.contract.location import TextPosition
from ninfer.text.automata.characters import LAST_CHARACTER, CharacterSet

_SURROGATE = re.compile("[\ud800-\udfff]")
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_PLAIN = re.compile(r'[^"\\\n\r]+')
_NUMBER = re.compile(r"[0-9]+")
_ESCAPES = {
    "n": 0x0A,
    "r": 0x0D,
    "t": 0x09,
    "a": 0x07,
    "b": 0x08,
    "f": 0x0C,
    "v": 0x0B,
    "e": 0x1B,
    "0": 0x00,
    "\\": 0x5C,
    '"': 0x22,
    "'": 0x27,
    "?": 0x3F,
    "/": 0x2F,
}
_CLASS_ESCAPES = {character: ord(character) for character in "-]^[$()*+.{|}"}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_HEX = frozenset("0123456789abcdefABCDEF")
COUNT_LIMIT = 2**31 - 1


class Reader:
    """A cursor over a GBNF text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.offset = 0
        surrogate = _SURROGATE.search(text)
        if surrogate is not None:
            raise self.refuse("a lone surrogate is not a character", surrogate.start())

    def refuse(self, fact: str, offset: int | None = None) -> InvalidGrammar:
        """Return the error of a place, by default the current one."""
        place = self.offset if offset is None else offset
        return InvalidGrammar(fact, location=TextPosition.of_offset(self.text, place))

    def skip_blanks(self) -> None:
        """Pass white space and comments."""
        blanks = _BLANK.match(self.text, self.offset)
        self.offset = blanks.end() if blanks else self.offset

    def peek(self) -> str:
        """Return the next character, or the empty string at the end."""
        return self.text[self.offset : self.offset + 1]

    def skip(self, expected: str) -> bool:
        """Pass a text if it comes next."""
        if self.text.startswith(expected, self.offset):
            self.offset += len(expected)
            return True
        return False

    def expect(self, expected: str, fact: str) -> None:
        """Pass blanks and a text.

        Raises: InvalidGrammar — something else comes next.
        """
        self.skip_blanks()
        if not self.skip(expected):
            raise self.refuse(fact)

    def name(self) -> str | None:
        """Return a rule name and pass it, or None where none starts."""
        found = _NAME.match(self.text, self.offset)
        if found is None:
            return None
        self.offset = found.end()
        return found.group()

    def number(self) -> int | None:
        """Return a count or a token id and pass it, or None where none starts.

        Raises: InvalidGrammar — it does not fit 31 bits.
        """
        found = _NUMBER.match(self.text, self.offset)
        if found is None:
            return None
        if len(found.group()) > 10 or int(found.group()) > COUNT_LIMIT:
            raise self.refuse("the number is too large")
        self.offset = found.end()
        return int(found.group())

    def literal(self) -> str:
        """Return the text of a literal; its quote comes next.

        Raises: InvalidGrammar — the literal is not closed on its line, or an escape is unknown.
        """
        start = self.offset
        self.offset += 1
        characters: list[str] = []
        while not self.skip('"'):
            if self.peek() in ("", "\n", "\r"):
                raise self.refuse("the literal is not closed", start)
            plain = _PLAIN.match(self.text, self.offset)
            if plain is None:
                characters.append(chr(self._character({})))
            else:
                characters.append(plain.group())
                self.offset = plain.end()
        return "".join(characters)

    def character_class(self) -> CharacterSet:
        """Return a class; its bracket comes next.

        Raises: InvalidGrammar — the class is not closed, a range is reversed, an escape unknown.
        """
        start = self.offset
        self.offset += 1
        negated = self.skip("^")
        ranges: list[tuple[int, int]] = []
        while not self.skip("]"):
            if self.peek() in ("", "\n", "\r"):
                raise self.refuse("the class is not closed", start)
            ranges.append(self._range())
        members = CharacterSet.of(ranges)
        return ~members if negated else members

    def _range(self) -> tuple[int, int]:
        start = self.offset
        low = self._character(_CLASS_ESCAPES)
        following = self.text[self.offset + 1 : self.offset + 2]
        if self.peek() != "-" or following in ("]", "", "\n", "\r"):
            return low, low
        self.offset += 1
        high = self._character(_CLASS_ESCAPES)
        if high < low:
            raise self.refuse("the range is reversed", start)
        return low, high

    def _character(self, further_escapes: dict[str, int]) -> int:
        start = self.offset
        character = self.text[start]
        self.offset += 1
        if character != "\\":
            return ord(character)
        letter = self.peek()
        self.offset += 1
        if letter in _HEX_DIGITS:
            return self._hexadecimal(_HEX_DIGITS[letter], start)
        escapes = _ESCAPES | further_escapes
        if letter not in escapes:
            raise self.refuse(f"the escape \\{letter} is unknown", start)
        return escapes[letter]

    def _hexadecimal(self, digits: int, start: int) -> int:
        spelled = self.text[self.offset : self.offset + digits]
        if len(spelled) != digits or not _HEX.issuperset(spelled):
            raise self.refuse(f"the escape needs {digits} hexadecimal digits", start)
        self.offset += digits
        code = int(spelled, 16)
        if code > LAST_CHARACTER or 0xD800 <= code <= 0xDFFF:
            raise self.refuse("the escape names no Unicode character", start)
        return code
