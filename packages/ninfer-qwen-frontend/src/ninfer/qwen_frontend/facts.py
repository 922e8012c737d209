"""What a frontend must know of a model, read from its files by a loader.

Does not read files, and does not know weights.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReasoningMarkers:
    """The texts around a model's thinking.

    Source: specification 5.1; the close of a constrained answer is ``canonical_close``, exactly.
    """

    open: str = "<think>"
    close: str = "</think>"

    @property
    def canonical_close(self) -> str:
        """Return the close with its fixed line breaks, which are framing and never published."""
        return f"\n{self.close}\n\n"


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Facts of one checkpoint.

    ``tokenizer_json`` is the text of a ``tokenizer.json``; ids 0..``token_domain``-1 are
    addressable, padding rows of the weights are not among them. ``control_ids`` are never visible
    text (chat, vision, padding marks); markers such as ``</think>`` or ``<tool_call>`` that
    the checkpoint does not call special stay ordinary text. ``tool_template`` replaces
    ``chat_template`` for requests with tools. ``reasoning`` is None for a model that does not
    think.
    """

    tokenizer_json: str
    token_domain: int
    eos_ids: tuple[int, ...]
    control_ids: tuple[int, ...] = ()
    chat_template: str | None = None
    tool_template: str | None = None
    bos_token: str = ""
    eos_token: str = ""
    model_name: str = ""
    reasoning: ReasoningMarkers | None = None


def find_reasoning_markers(chat_template: str | None) -> ReasoningMarkers | None:
    """Return the markers that a chat template writes around thinking, or None."""
    markers = ReasoningMarkers()
    if chat_template and markers.open in chat_template and markers.close in chat_template:
        return markers
    return None
