"""The frontend of a Qwen-like model over the real vocabulary; built once, some seconds."""

from __future__ import annotations

from functools import cache

from ninfer.qwen_frontend import Frontend, ModelFacts, find_reasoning_markers
from support.templates import QWEN_STYLE
from support.vocabularies import (
    QWEN_EOS,
    QWEN_PLAIN_ADDED,
    QWEN_SPECIAL_TOKENS,
    qwen_ranks,
    qwen_tokenizer,
)


@cache
def qwen_facts() -> ModelFacts:
    """Return the facts of the real vocabulary with the tests' own template."""
    first = len(qwen_ranks())
    ids = {text: first + number for number, text in enumerate(QWEN_SPECIAL_TOKENS)}
    return ModelFacts(
        tokenizer_json=qwen_tokenizer().to_str(),
        token_domain=first + len(QWEN_SPECIAL_TOKENS),
        eos_ids=tuple(ids[text] for text in QWEN_EOS),
        control_ids=tuple(
            ids[text] for text in QWEN_SPECIAL_TOKENS if text not in QWEN_PLAIN_ADDED
        ),
        chat_template=QWEN_STYLE,
        eos_token="<|im_end|>",
        model_name="qwen",
        reasoning=find_reasoning_markers(QWEN_STYLE),
    )


@cache
def qwen_frontend() -> Frontend:
    """Return the shared frontend."""
    return Frontend(qwen_facts())
