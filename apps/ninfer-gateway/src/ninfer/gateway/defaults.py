"""What an answer gets where its request does not say."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import msgspec

from ninfer.contract import DIRECT_PRESET, TOP_K_LIMIT, SamplingOverrides


@dataclass(frozen=True, slots=True)
class AnswerDefaults:
    """A server's choices for what requests leave open; None leaves a choice to the model.

    Units:  tokens.
    Raises: InvalidOption — a sampling value is out of range; ValueError — a count is.
    """

    output_tokens: int = 8192
    sampling: SamplingOverrides = SamplingOverrides()
    enable_thinking: bool | None = None
    preserve_thinking: bool | None = None
    thinking_budget: int | None = None

    def __post_init__(self) -> None:
        if self.output_tokens < 1:
            raise ValueError(f"default_max_tokens: {self.output_tokens} is less than 1")
        if self.thinking_budget is not None and self.thinking_budget < 1:
            raise ValueError(f"default_thinking_budget: {self.thinking_budget} is less than 1")
        self.sampling.resolve(DIRECT_PRESET)
        top_k = self.sampling.top_k
        if top_k is not None and top_k > TOP_K_LIMIT:
            raise ValueError(f"top_k: {top_k} is not in 0..{TOP_K_LIMIT}")

    def thinking(
        self, asked: bool | None, effort: object, template: Collection[str] = ()
    ) -> bool | None:
        """Return whether to think; an effort and a template variable are words of the request."""
        if asked is None and effort is None and "enable_thinking" not in template:
            return self.enable_thinking
        return asked

    def preserving(self, asked: bool | None, template: Collection[str] = ()) -> bool | None:
        """Return whether earlier thinking stays in the prompt."""
        if asked is None and "preserve_thinking" not in template:
            return self.preserve_thinking
        return asked

    def budget(self, asked: int | None) -> int | None:
        """Return how long an answer may think."""
        return self.thinking_budget if asked is None else asked


def template_names(kwargs: msgspec.Raw) -> Collection[str]:
    """Return the template variables a request sets; what is no object sets none."""
    try:
        return msgspec.json.decode(bytes(kwargs) or b"{}", type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return ()
