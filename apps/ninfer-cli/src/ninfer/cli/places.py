"""Where the user gave what the contract calls by its own names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ninfer.contract import (
    CONSTRAINT_ERRORS,
    ContextLengthExceeded,
    InvalidPrompt,
    InvalidToolConstraint,
    JsonPointer,
    OptionPath,
    RequestError,
)

FLAGS = {
    "temperature": "--temperature",
    "top_p": "--top-p",
    "top_k": "--top-k",
    "min_p": "--min-p",
    "presence_penalty": "--presence-penalty",
    "frequency_penalty": "--frequency-penalty",
    "seed": "--seed",
    "execution.requested_output_tokens": "--max-new",
    "max_context": "--max-context",
    "kv_tokens": "--kv-capacity",
    "prefill_chunk": "--prefill-chunk",
    "compute_threads": "--threads",
    "draft_tokens": "--draft-tokens",
    "execution.thinking.budget_tokens": "--thinking-budget",
    "prompt.enable_thinking": "--no-thinking",
    "prompt.reasoning_effort": "--reasoning-effort",
    "output.raw": "--raw-output",
    "stop.token_ids": "--stop-token-id",
}
"""The flags of options that are always given the same way."""


class ToolPlace(NamedTuple):
    """A declared tool's name and where its declaration stands."""

    name: str
    place: str


@dataclass(frozen=True, slots=True)
class Places:
    """What one command line gave.

    ``prompt`` is the option that holds the conversation and its tools; ``messages`` and ``tools``
    are in the prompt's order, ``stops`` in the stop policy's.
    """

    constraint: str | None = None
    prompt: str = "--prompt"
    messages: tuple[str, ...] = ()
    tools: tuple[ToolPlace, ...] = ()
    stops: tuple[str, ...] = ()

    def flag(self, name: str) -> str:
        """Return the flag of a request option."""
        if name == "constraint" and self.constraint:
            return self.constraint
        if name == "stop.strings" and self.stops:
            return self.stops[0].partition("[")[0]
        if name in FLAGS:
            return FLAGS[name]
        return self.prompt if name == "tools" or name.startswith("prompt") else name

    def of(self, error: RequestError) -> str:
        """Return where an error lies, or nothing if it has no place."""
        location = error.location
        if isinstance(error, InvalidToolConstraint) and isinstance(location, JsonPointer):
            return self.tools[int(location.tokens[0])].place
        if error.origin.tool is not None:
            tool = next(tool for tool in self.tools if tool.name == error.origin.tool)
            return f"{tool.place}.parameters{'' if location is None else location}"
        if isinstance(location, OptionPath):
            return self._option(error, location)
        if isinstance(error, (InvalidPrompt, ContextLengthExceeded)):
            return self.prompt
        place = "" if location is None else str(location)
        is_about_constraint = isinstance(error, CONSTRAINT_ERRORS) or location is not None
        if is_about_constraint and self.constraint:
            return f"{self.constraint}: {place}" if place else self.constraint
        return place

    def _option(self, error: RequestError, location: OptionPath) -> str:
        lists = {"prompt.messages": self.messages, "stop.strings": self.stops}
        if location.index is not None and lists.get(location.name):
            return lists[location.name][location.index]
        flag = self.flag(location.name)
        if isinstance(error, CONSTRAINT_ERRORS) and self.constraint:
            flag = self.constraint
        return str(OptionPath(flag, location.index))
