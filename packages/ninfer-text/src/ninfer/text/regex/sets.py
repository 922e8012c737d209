"""The character sets that ECMAScript names."""

from __future__ import annotations

from ninfer.text.automata.characters import CharacterSet

DIGIT = CharacterSet.of([(0x30, 0x39)])
WORD = DIGIT | CharacterSet.of([(0x41, 0x5A), (0x61, 0x7A), (0x5F, 0x5F)])
SPACE = CharacterSet.of(
    [
        (0x09, 0x0D),
        (0x20, 0x20),
        (0xA0, 0xA0),
        (0x1680, 0x1680),
        (0x2000, 0x200A),
        (0x2028, 0x2029),
        (0x202F, 0x202F),
        (0x205F, 0x205F),
        (0x3000, 0x3000),
        (0xFEFF, 0xFEFF),
    ]
)
LINE_END = CharacterSet.from_text("\n\r\u2028\u2029")
DOT = ~LINE_END

NAMED = {"d": DIGIT, "D": ~DIGIT, "w": WORD, "W": ~WORD, "s": SPACE, "S": ~SPACE}
"""What ``\\d``, ``\\w`` and ``\\s`` and their opposites mean."""
