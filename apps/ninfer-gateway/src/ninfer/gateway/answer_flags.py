"""The flags that say what answers get where their requests do not."""

from __future__ import annotations

import argparse

from ninfer.contract import SamplingOverrides
from ninfer.gateway.defaults import AnswerDefaults

_FLOATS = ("temperature", "top_p", "min_p", "presence_penalty", "frequency_penalty")


def add_answer_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags; what a request itself says always comes first."""
    add = parser.add_argument_group("where a request does not say").add_argument
    known = AnswerDefaults()
    add("--default-max-tokens", type=int, default=known.output_tokens, help="tokens of an answer")
    add("--default-thinking-budget", type=int, help="tokens to think; without it no limit")
    add("--no-thinking", action="store_true", help="answer directly")
    add("--preserve-thinking", action="store_true", help="keep earlier thinking in the prompt")
    add("--greedy", action="store_true", help="take the likeliest token: temperature 0")
    for name in _FLOATS:
        flag = f"--{name.replace('_', '-')}"
        add(flag, type=float, help="without it the model's preset")
    add("--top-k", type=int, help="20 at most; without it the model's preset")
    add("--seed", type=int, help="of the draws; without it a fresh one for every request")


def answer_defaults(flags: argparse.Namespace) -> AnswerDefaults:
    """Return what the flags say.

    Raises: InvalidOption, ValueError — a value is out of range, or two exclude each other.
    """
    if flags.greedy and flags.temperature is not None:
        raise ValueError("greedy: excludes --temperature")
    numbers = {name: getattr(flags, name) for name in _FLOATS}
    if flags.greedy:
        numbers["temperature"] = 0.0
    return AnswerDefaults(
        output_tokens=flags.default_max_tokens,
        sampling=SamplingOverrides(**numbers, top_k=flags.top_k, seed=flags.seed),
        enable_thinking=False if flags.no_thinking else None,
        preserve_thinking=True if flags.preserve_thinking else None,
        thinking_budget=flags.default_thinking_budget,
    )
