"""A rendered prompt and the facts that its answer starts from."""

from __future__ import annotations

from dataclasses import dataclass

from ninfer.contract import PromptReport, ToolDeclaration


@dataclass(frozen=True, slots=True)
class PreparedPrompt:
    """What preparation found out; immutable, so it can be submitted more than once.

    ``is_chat`` is False for raw text and tokens, whose grammar covers all new text.
    ``continued_text`` is the part of the answer that the prompt already holds.
    """

    token_ids: tuple[int, ...]
    is_chat: bool = False
    starts_in_reasoning: bool = False
    continued_text: str | None = None
    tools: tuple[ToolDeclaration, ...] = ()

    @property
    def has_tools(self) -> bool:
        """Return whether tools were declared."""
        return bool(self.tools)

    @property
    def report(self) -> PromptReport:
        """Return what the prompt became."""
        return PromptReport(len(self.token_ids), self.starts_in_reasoning)
