"""How values are spelled: separators, and the form of strings that are no JSON.

JSON answers use the compact form; a model's tool format has separators of its own and writes plain
string parameters raw, up to a delimiter that the text may not contain.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spelling:
    """Separators between items and between a name and its value."""

    comma: str = ","
    colon: str = ":"

    @property
    def is_compact(self) -> bool:
        """Return whether the shared JSON rules apply."""
        return self == COMPACT


COMPACT = Spelling()
SPACED = Spelling(", ", ": ")
"""What chat templates write inside tool calls."""
