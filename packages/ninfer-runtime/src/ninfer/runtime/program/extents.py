"""How many drafts a row can use."""

from __future__ import annotations

from ninfer.contract import ProgramShape


def draft_extent(shape: ProgramShape, ledger_tokens: int, remaining_tokens: int) -> int:
    """Return how many drafts a row can use: the last licensed token is no draft."""
    room = min(remaining_tokens, shape.context_tokens - ledger_tokens)
    return max(0, min(shape.draft_limit, room - 1))
