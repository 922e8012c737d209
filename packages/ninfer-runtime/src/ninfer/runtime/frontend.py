"""What the engine needs of a frontend: prompts become token ids, requests become sessions.

The engine knows nothing of templates, tokens' text or output formats.
"""

from __future__ import annotations

from typing import Protocol

from ninfer.contract import FinishReason, OutputSession, PromptInput, RequestOptions
from ninfer.qwen_frontend.prepared import PreparedPrompt


class Frontend(Protocol):
    """Prepares prompts and opens output sessions, both on the caller's thread."""

    def prepare(self, prompt: PromptInput) -> PreparedPrompt:
        """Render a prompt.

        Raises: RequestError — the prompt or a combination of its options is refused.
        """
        ...

    def open_session(
        self,
        prepared: PreparedPrompt,
        options: RequestOptions,
        *,
        output_limit: int,
        limit_reason: FinishReason = FinishReason.OUTPUT_LIMIT,
    ) -> OutputSession:
        """Compile what the request is held to and return its output session.

        Units:  output_limit counts tokens, injected control tokens included; ``limit_reason`` is
                the finish reason of an answer that reaches it.
        Raises: RequestError — an option, a constraint or a combination is refused.
        """
        ...
