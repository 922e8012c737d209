"""The training text: dialogues that the target wrote, as token ids with the answer's place."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from drafters.prompts import chat_prefix, json_tasks
from drafters.writing import Writer

Encode = Callable[[str], list[int]]
Decode = Callable[[Sequence[int]], str]


class Dialogue(NamedTuple):
    """Token ids of a whole dialogue; the answer begins at ``answer``."""

    tokens: list[int]
    answer: int


def write_dialogues(
    writer: Writer,
    rows: int,
    encode: Encode,
    decode: Decode,
    ends: Sequence[int],
    source: random.Random,
    *,
    json_share: float = 0.45,
    greedy_share: float = 0.3,
) -> list[Dialogue]:
    """Return one batch: the target makes up user turns, then answers them and the JSON tasks."""
    tasks = json_tasks(int(rows * json_share), source)
    opening = encode(chat_prefix(None))
    turns = writer.write([opening] * (rows - len(tasks)), [1.0] * (rows - len(tasks)), ends)
    users = [decode(turn[len(opening) :]).split("<|im_end|>")[0].strip() for turn in turns]
    prompts = [encode(chat_prefix(user[:600])) for user in users if user]
    answers = [len(prompt) for prompt in prompts]
    for user, beginning in tasks:
        prompt = encode(chat_prefix(user))
        answers.append(len(prompt))
        prompts.append(prompt + encode(beginning))
    kept = [i for i, prompt in enumerate(prompts) if len(prompt) < writer.columns * 3 // 4]
    temperatures = [0.0 if source.random() < greedy_share else 0.7 for _ in kept]
    written = writer.write([prompts[i] for i in kept], temperatures, ends)
    return [
        Dialogue(tokens, answers[i])
        for i, tokens in zip(kept, written, strict=True)
        if len(tokens) > answers[i] + 8
    ]


def batches(
    dialogues: Sequence[Dialogue], rows: int, device: torch.device, source: random.Random
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield padded tokens int64[B, T] and where an answer's token stands, bool[B, T]."""
    order = list(range(len(dialogues)))
    source.shuffle(order)
    for first in range(0, len(order) - rows + 1, rows):
        chosen = [dialogues[i] for i in order[first : first + rows]]
        columns = max(len(d.tokens) for d in chosen)
        tokens = torch.zeros((rows, columns), dtype=torch.int64)
        answered = torch.zeros((rows, columns), dtype=torch.bool)
        for row, dialogue in enumerate(chosen):
            length = len(dialogue.tokens)
            tokens[row, :length] = torch.tensor(dialogue.tokens)
            answered[row, dialogue.answer : length] = True
        yield tokens.to(device), answered.to(device)
