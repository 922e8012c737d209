"""A whole engine without a model: a byte tokenizer, a ChatML template, scripted answers.

The program likes to say the next byte of a script; a constraint makes it take what is allowed.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ninfer.contract import EngineOptions
from ninfer.qwen_frontend import Frontend, ModelFacts, bundled_template
from ninfer.qwen_frontend.facts import find_reasoning_markers
from ninfer.runtime import Engine, RequestLog
from support.scripted_program import Logits, ScriptedProgram, hashed_logits

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}<|im_start|>assistant{{ '\n' }}"
)
THINKING_TEMPLATE = TEMPLATE + "{% if enable_thinking is not defined or enable_thinking %}<think>\n"
THINKING_TEMPLATE += "{% else %}<think>\n\n</think>\n\n{% endif %}"
_MARKS = ("<|im_end|>", "<|im_start|>")
_ANSWER_STARTS = b"assistant\n"
_FRAMES = (b"<think>\n\n</think>\n\n", b"<think>\n")


def byte_letters() -> list[str]:
    """Return the letter that byte-level tokenizers write for each byte value."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    moved = iter(range(256, 512))
    return [chr(value) if value in kept else chr(next(moved)) for value in range(256)]


def tokenizer_json() -> str:
    """Return a byte-level tokenizer without merges: token ids are byte values, then two marks."""
    letters = byte_letters()
    vocabulary = {letter: value for value, letter in enumerate(letters)}
    added = [
        {
            "id": 256 + index,
            "content": mark,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for index, mark in enumerate(_MARKS)
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    return json.dumps(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": added,
            "normalizer": None,
            "pre_tokenizer": byte_level | {"use_regex": False},
            "post_processor": None,
            "decoder": byte_level | {"use_regex": True},
            "model": {
                "type": "BPE",
                "dropout": None,
                "unk_token": None,
                "continuing_subword_prefix": None,
                "end_of_word_suffix": None,
                "fuse_unk": False,
                "byte_fallback": False,
                "ignore_merges": False,
                "vocab": vocabulary,
                "merges": [],
            },
        }
    )


def scripted_facts(template: str = TEMPLATE) -> ModelFacts:
    """Return the facts of a byte-level ChatML model."""
    return ModelFacts(
        tokenizer_json=tokenizer_json(),
        token_domain=256 + len(_MARKS),
        eos_ids=(256,),
        control_ids=(257,),
        chat_template=template,
        tool_template=bundled_template(),
        eos_token=_MARKS[0],
        model_name="scripted",
        reasoning=find_reasoning_markers(template),
    )


def saying(script: Callable[[str], str]) -> Logits:
    """Return logits that spell ``script(conversation)`` after the last assistant mark, then EOS.

    Prompts without a mark, which are no conversations, get anything.
    """
    background = hashed_logits(258, seed=7)

    def logits(history: tuple[int, ...]) -> list[float]:
        values = list(background(history))
        values[256] -= 3.0
        if 257 not in history:
            return values
        start = max(i for i, token in enumerate(history) if token == 257) + 1
        start += len(_ANSWER_STARTS)
        opened = bytes(t for t in history[start : start + 20] if t < 256)
        start += next((len(frame) for frame in _FRAMES if opened.startswith(frame)), 0)
        said = bytes(t for t in history[start:] if t < 256)
        words = bytes(t for t in history[:start] if t < 256).decode("utf-8", "replace")
        target = script(words).encode()
        if target.startswith(said):
            wanted = target[len(said)] if len(said) < len(target) else 256
            values[wanted] += 100.0
        return values

    return logits


def scripted_engine(
    script: str | Callable[[str], str],
    options: EngineOptions | None = None,
    *,
    template: str = TEMPLATE,
    log: RequestLog | None = None,
    **program: object,
) -> Engine:
    """Return a running engine whose free answer is the script."""
    options = options or EngineOptions()
    say = script if callable(script) else lambda _: script
    shape = {
        "rows": options.max_concurrency,
        "context_tokens": 2048,
        "prefill_chunk_tokens": 512,
    } | program
    scripted = ScriptedProgram(saying(say), token_domain=258, **shape)
    return Engine(scripted, Frontend(scripted_facts(template)), options, log=log)


def opening(script: str | Callable[[str], str], **program: object):
    """Return what the command line opens engines with; it opens a scripted one."""

    @contextmanager
    def open_engine(model: Path | None, options: EngineOptions, **_) -> Iterator[Engine]:
        with scripted_engine(script, options, **program) as engine:
            yield engine

    return open_engine
