"""What every protocol's translation yields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ninfer.contract import ChatPrompt, RequestOptions
from ninfer.gateway.failure import Fields, WireError


class Translated(NamedTuple):
    """A request for the engine, and how its errors name the client's fields."""

    prompt: ChatPrompt
    options: RequestOptions
    fields: Fields


def refuse_unserved(request: Any, unserved: Mapping[str, tuple[Any, ...]]) -> None:
    """Check that fields which are not served ask for nothing.

    Raises: WireError — one of them does.
    """
    for name, neutral in unserved.items():
        value = getattr(request, name)
        if not any(value == known and type(value) is type(known) for known in neutral):
            raise WireError("not served", param=name, code=f"{name}_not_supported")
