"""The fixed sentence that ends a model's thinking when its budget is spent."""

from __future__ import annotations

from ninfer.contract import ModelError, TokenClass, TokenVocabulary
from ninfer.qwen_frontend.facts import ReasoningMarkers
from ninfer.qwen_frontend.preparation import Encoder

_SENTENCE = (
    "\n\n Considering the limited time by the user, I have to give the solution based on the"
    " thinking directly now."
)


def closing_texts(markers: ReasoningMarkers) -> tuple[str, ...]:
    """Return what may close the thinking: the sentence, or the rest of a close already begun.

    The rests serve an answer that wrote the marker itself as its last thinking token: the sentence
    behind it would be content.
    """
    return (_SENTENCE + markers.canonical_close, "\n\n", "\n")


def closing_tokens(
    markers: ReasoningMarkers, encoder: Encoder, vocabulary: TokenVocabulary
) -> tuple[tuple[int, ...], ...]:
    """Return the closing texts as tokens.

    Raises: ModelError — the tokens are not plain text or do not spell the text again.
    """
    closings = tuple(encoder.encode(text, whole_prompt=False) for text in closing_texts(markers))
    for text, tokens in zip(closing_texts(markers), closings, strict=True):
        for token in tokens:
            if vocabulary.classes[token] != TokenClass.TEXT:
                raise ModelError(f"token {token} of the thinking close is not ordinary text")
        if b"".join(vocabulary.pieces[token] for token in tokens) != text.encode():
            raise ModelError(f"the tokenizer does not spell {text!r} back")
    return closings
