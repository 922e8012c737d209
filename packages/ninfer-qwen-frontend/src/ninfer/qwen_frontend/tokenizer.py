"""Text to token ids, with the checkpoint's own tokenizer."""

from __future__ import annotations

from typing import Any

from ninfer.contract import ModelError


class TextEncoder:
    """Encodes with a ``tokenizer.json``; safe to use from several threads.

    Raises: ModelError — the text is not a tokenizer.
    """

    __slots__ = ("tokenizer",)

    def __init__(self, tokenizer_json: str) -> None:
        from tokenizers import Tokenizer

        try:
            self.tokenizer: Any = Tokenizer.from_str(tokenizer_json)
        except Exception as error:  # the library raises bare Exception
            raise ModelError(f"tokenizer.json: {error}") from error

    def encode(self, text: str, *, whole_prompt: bool = False) -> tuple[int, ...]:
        """Return the ids; ``whole_prompt`` adds what the tokenizer puts around any text.

        Effects: other threads run meanwhile.
        """
        # The library holds the GIL while it encodes one text, and not while it encodes a batch;
        # the fast form leaves out the offsets, which nobody reads.
        (encoding,) = self.tokenizer.encode_batch_fast([text], add_special_tokens=whole_prompt)
        return tuple(encoding.ids)
