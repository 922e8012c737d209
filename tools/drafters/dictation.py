"""Lets the target write dialogues: it makes up user turns, answers them, and fills JSON."""

from __future__ import annotations

import json
import random
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import torch
from tokenizers import Tokenizer

from drafters.corpus import GREEDY, JSON, Dialogues
from drafters.json_tables import json_tables, token_bytes
from drafters.prompts import (
    SYSTEM,
    SYSTEMS,
    Form,
    any_form,
    chat_prefix,
    forced_texts,
    json_task,
)
from drafters.target import Target
from drafters.writing import Task, Turns, Writer, Written

JSON_SHARE, GREEDY_SHARE, OTHER_SYSTEM_SHARE, TEMPERATURE = 0.7, 0.5, 0.1, 0.7
OWN_TURN_SHARE = 0.35
"""Answers in JSON to turns that the target made up, which say nothing of it."""
SHORTEST_ANSWER = 8
PASSAGES, PASSAGE_CHARACTERS = 256, 400
"""Texts kept for tasks that ask for facts of one, and their length."""


class Dictation:
    """Hands out tasks and keeps what is worth learning from."""

    def __init__(self, folder: Path, target: Target, rows: int, columns: int, seed: int) -> None:
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        ends = json.loads((folder / "generation_config.json").read_text())["eos_token_id"]
        self._source = random.Random(seed)
        self._passages: deque[str] = deque(maxlen=PASSAGES)
        self._longest_prompt = columns * 3 // 4
        self._prefix = self._encode(chat_prefix(None))
        joint = self._encode("<|im_end|>\n<|im_start|>assistant\n")
        special = self._tokenizer.get_added_tokens_decoder()
        pieces = [
            None if token in special else self._tokenizer.id_to_token(token)
            for token in range(target.shape.vocab)
        ]
        tables = json_tables(token_bytes(pieces), ends, target.device, forced_texts())
        self._forced = tables.starts
        turns = Turns(ends, joint[0], joint[1:], user_tokens=min(160, columns // 2))
        self._writer = Writer(target, rows, columns, turns, tables, self._prefix)
        self._kept: list[tuple[Written, int]] = []

    def run(self, proceed: Callable[[int], bool]) -> Dialogues:
        """Write as long as ``proceed(answer tokens so far)`` says so."""
        answer_tokens, looked, started = 0, 0.0, time.monotonic()
        texts = self._writer.write(self._task, lambda: proceed(answer_tokens))
        for written in texts:
            if self._keep(written):
                answer_tokens += len(written.tokens) - written.answer
            passed = time.monotonic() - started
            if passed > looked + 10:
                looked = passed
                print(f"{passed:6.1f} s  {len(self._kept)} dialogues, {answer_tokens} tokens")
        kept = self._kept
        return Dialogues.of(
            [written.tokens for written, _ in kept],
            [written.answer for written, _ in kept],
            [flags for _, flags in kept],
        )

    def text(self, dialogue: tuple[list[int], int]) -> str:
        """Return an answer's text."""
        tokens, answer = dialogue
        return self._tokenizer.decode(tokens[answer:], skip_special_tokens=False)

    def _task(self) -> Task:
        source = self._source
        temperature = 0.0 if source.random() < GREEDY_SHARE else TEMPERATURE
        system = source.choice(SYSTEMS) if source.random() < OTHER_SYSTEM_SHARE else SYSTEM
        is_json = source.random() < JSON_SHARE
        if not is_json or source.random() < OWN_TURN_SHARE:
            tokens = self._encode(chat_prefix(None, system))
            form = any_form(source) if is_json else None
            return self._held(Task(tokens, 0, temperature), form)
        while True:
            user, form = json_task(source, self._passages)
            prompt = self._encode(chat_prefix(user, system))
            if len(prompt) < self._longest_prompt:
                return self._held(Task(prompt, len(prompt), temperature), form)

    def _held(self, task: Task, form: Form | None) -> Task:
        """Return a task whose answer is held to a form of JSON."""
        if form is None:
            return task
        keys = tuple(self._forced[key] for key in form.keys)
        return task._replace(is_json=True, opening=self._forced[form.opening], keys=keys)

    def _keep(self, written: Written) -> bool:
        task, length = written.task, len(written.tokens) - written.answer
        if not written.answer or length < SHORTEST_ANSWER:
            return False
        if not task.is_json and self._source.random() < 0.05:
            text = self.text((written.tokens.tolist(), written.answer))
            self._passages.append(text.split("<|im_end|>")[0][:PASSAGE_CHARACTERS].strip())
        flags = (GREEDY if task.temperature <= 0 else 0) | (JSON if task.is_json else 0)
        self._kept.append((written._replace(tokens=written.tokens.to(torch.int32)), flags))
        return True

    def _encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids
