"""What every protocol's translation yields, and checks that all of them make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ninfer.contract import ChatPrompt, Message, PromptOptions, RequestOptions
from ninfer.gateway.failure import Fields, WireError


class PlacedMessage(NamedTuple):
    """A message and the field it came from."""

    message: Message
    place: str


class PlacedPrompt(NamedTuple):
    """A prompt and the field that each of its messages came from."""

    prompt: ChatPrompt
    places: tuple[str, ...]

    @classmethod
    def of(cls, messages: Iterable[PlacedMessage], options: PromptOptions) -> PlacedPrompt:
        """Return the prompt of a conversation."""
        placed = tuple(messages)
        prompt = ChatPrompt(tuple(one.message for one in placed), options)
        return cls(prompt, tuple(one.place for one in placed))


class Translated(NamedTuple):
    """A request for the engine, and how its errors name the client's fields."""

    prompt: ChatPrompt
    options: RequestOptions
    fields: Fields


def require_text(text: str | None, place: str) -> str:
    """Return a part's text, which may be empty but not absent.

    Raises: WireError — it is absent.
    """
    if text is None:
        raise WireError("required field is missing", param=place, code="missing_field")
    return text


def refuse_unserved(request: Any, unserved: Mapping[str, tuple[Any, ...]]) -> None:
    """Check that fields which are not served ask for nothing.

    Raises: WireError — one of them does.
    """
    for name, neutral in unserved.items():
        value = getattr(request, name)
        if not any(value == known and type(value) is type(known) for known in neutral):
            raise WireError("not served", param=name, code=f"{name}_not_supported")
