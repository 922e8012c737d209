"""How much a request wants the model to think."""

from __future__ import annotations

from ninfer.contract import ReasoningEffort
from ninfer.gateway.failure import WireError


def reasoning_effort(word: str | None, field: str) -> ReasoningEffort | None:
    """Return the effort of a protocol's word.

    Raises: WireError — the word is unknown.
    """
    if word is None:
        return None
    try:
        return ReasoningEffort(word)
    except ValueError:
        known = ", ".join(effort.value for effort in ReasoningEffort)
        fact = f"{word!r} is not one of {known}"
        raise WireError(fact, param=field) from None
