"""Which options one request may combine."""

from __future__ import annotations

from ninfer.contract import (
    ConflictingOptions,
    InvalidOption,
    OptionPath,
    RequestOptions,
    TokenVocabulary,
)


def require_stop_policy(options: RequestOptions, vocabulary: TokenVocabulary) -> None:
    """Check the stop policy by itself.

    Raises: InvalidOption — a stop string is empty, or a stop token is outside the domain.
    """
    for index, stop in enumerate(options.stop.strings):
        if not stop.text:
            raise InvalidOption("an empty text", location=OptionPath("stop.strings", index))
    for index, token in enumerate(options.stop.token_ids):
        if not 0 <= token < vocabulary.token_domain:
            raise InvalidOption(
                f"token {token} is outside the domain of {vocabulary.token_domain}",
                location=OptionPath("stop.token_ids", index),
            )


def require_guaranteed_ending(options: RequestOptions, source: str, *, is_chat: bool) -> None:
    """Check that only the language and the model's own EOS can end the answer.

    ``source`` names what asks for the guarantee: ``constraint`` or ``tools``. Publishing options
    are no conflict for raw prompts, which publish all new text anyway.
    Raises: ConflictingOptions — the first conflicting option, named.
    Source: specification 5.1 and 10.3.
    """
    stop, output = options.stop, options.output
    conflicts = {
        "stop.strings": bool(stop.strings),
        "stop.token_ids": bool(stop.token_ids),
        "stop.include_model_defaults": not stop.include_model_defaults,
        "stop.publish_stop_token": stop.publish_stop_token,
        "output.raw": is_chat and output.raw,
        "output.preserve_special_tokens": is_chat and output.preserve_special_tokens,
    }
    for name, is_set in conflicts.items():
        if is_set:
            raise ConflictingOptions(source, name, "a guaranteed answer ends only by its language")
