"""The token domain: raw bytes and class of every id a model can produce.

Does not know tokenizers; the frontend states the facts. Source: specification 3.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from ninfer.contract.errors import InvalidTokenReference


class TokenClass(IntEnum):
    """What an id may do in a constrained answer."""

    TEXT = 0
    """Ordinary bytes; matched by spelling."""
    CONTROL = 1
    """A special id that is never visible text: impossible unless a model rule names it."""
    EOS = 2
    """Ends the answer; possible exactly where the language may end."""
    UNUSED = 3
    """Padding and ids without a meaning: always impossible."""


@dataclass(frozen=True, slots=True)
class TokenVocabulary:
    """Bytes and classes of the ids 0..V-1.

    Shapes: pieces and classes have V entries; a TEXT piece is not empty, and need not be whole
            UTF-8; pieces of other classes are spellings for display only.
    Raises: ValueError — lengths differ, a class is unknown, a TEXT piece is empty, or no id is EOS.
    """

    pieces: tuple[bytes, ...]
    classes: bytes
    eos_ids: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        if len(self.pieces) != len(self.classes):
            raise ValueError(f"{len(self.pieces)} pieces but {len(self.classes)} classes")
        if unknown := set(self.classes).difference(TokenClass):
            raise ValueError(f"{min(unknown)} is no class of a token")
        text, end = int(TokenClass.TEXT), int(TokenClass.EOS)
        for token, (piece, kind) in enumerate(zip(self.pieces, self.classes, strict=True)):
            if not piece and kind == text:
                raise ValueError(f"token {token} is TEXT but has no bytes")
        eos = tuple(i for i, kind in enumerate(self.classes) if kind == end)
        if not eos:
            raise ValueError("no id is EOS")
        object.__setattr__(self, "eos_ids", eos)

    @classmethod
    def build(
        cls, pieces: Sequence[bytes], *, eos: Sequence[int], control: Sequence[int] = ()
    ) -> TokenVocabulary:
        """Return a vocabulary whose empty pieces are UNUSED and whose other ids are TEXT.

        Raises: ValueError — an id has no piece, or no id is EOS.
        """
        classes = bytearray(TokenClass.TEXT if p else TokenClass.UNUSED for p in pieces)
        for tokens, kind in ((control, TokenClass.CONTROL), (eos, TokenClass.EOS)):
            for token in tokens:
                if not 0 <= token < len(classes):
                    raise ValueError(f"token {token} is outside the domain of {len(classes)}")
                classes[token] = kind
        return cls(tuple(pieces), bytes(classes))

    @property
    def token_domain(self) -> int:
        """Return V."""
        return len(self.pieces)

    def require_text(self, token: int) -> None:
        """Check that visible text may use an id.

        Raises: InvalidTokenReference — the id is outside the domain or not TEXT.
        """
        if not 0 <= token < self.token_domain:
            raise InvalidTokenReference(
                f"token {token} is outside the domain of {self.token_domain}"
            )
        if self.classes[token] != TokenClass.TEXT:
            kind = TokenClass(self.classes[token]).name.lower()
            raise InvalidTokenReference(f"token {token} is {kind}, not ordinary text")
