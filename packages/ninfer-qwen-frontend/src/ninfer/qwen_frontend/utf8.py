"""Bytes of an answer become characters, whatever the bytes are."""

from __future__ import annotations

import codecs

_make_decoder = codecs.getincrementaldecoder("utf-8")


class Utf8Decoder:
    """Decodes UTF-8 piece by piece and never raises.

    Math:   the pieces' texts joined equal the joined bytes decoded at once; every malformed maximal
            subpart is one U+FFFD, and so is a truncated tail once the end is declared.
    Source: Unicode 15, section 3.9, "U+FFFD substitution of maximal subparts".
    """

    __slots__ = ("_decoder",)

    def __init__(self) -> None:
        self._decoder = _make_decoder("replace")

    def fork(self) -> Utf8Decoder:
        """Return an independent decoder at the same position."""
        twin = Utf8Decoder()
        twin._decoder.setstate(self._decoder.getstate())
        return twin

    def decode(self, data: bytes) -> str:
        """Return the characters that ``data`` completes."""
        return self._decoder.decode(data)

    def finish(self) -> str:
        """Return what a truncated tail becomes, and start afresh."""
        text = self._decoder.decode(b"", True)
        self._decoder.reset()
        return text

    @property
    def is_inside_character(self) -> bool:
        """Return whether bytes of an unfinished character are waiting."""
        return bool(self._decoder.getstate()[0])
