#!/usr/bin/env python3
"""What checkpoints save a conversation with a hybrid, and what leaving them costs its first prompt.

A random model of a real one's shape: timings need shapes, not knowledge.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
from gpu_rounds_model import SHAPES, random_model

from ninfer.contract import (
    CommitDecision,
    EngineOptions,
    SamplingParameters,
    SequenceId,
    SequenceRequest,
)
from ninfer.runtime.loading import LoadedModel
from ninfer.runtime.program import TorchProgram

GREEDY = SamplingParameters(temperature=0.0)
ADDED_TOKENS = 40
"""Tokens of a next question."""


def main() -> None:
    """Print how long four kinds of prompt take to their first token, without and with them."""
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--shape", choices=SHAPES, default="qwen3.5-2b")
    flags.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    flags.add_argument("--prompt", type=int, default=4096, help="tokens of the first prompt")
    flags.add_argument("--answer", type=int, default=64, help="tokens of every answer")
    flags.add_argument("--repeats", type=int, default=5)
    chosen = flags.parse_args()
    model = random_model(SHAPES[chosen.shape], chosen.device)
    for budget in (0, EngineOptions().state_checkpoint_bytes):
        turns = Turns(model, chosen.prompt, chosen.answer, budget)
        turns.run(0)
        found = [turns.run(1 + repeat) for repeat in range(chosen.repeats)]
        print(f"checkpoints of {budget >> 20} MiB, {turns.state_bytes / 1e6:.1f} MB each:")
        for name in found[0]:
            seconds = statistics.median(run[name] for run in found)
            print(f"  {name:22} {seconds * 1e3:8.1f} ms")


class Turns:
    """One program, and conversations in it."""

    def __init__(
        self, model: LoadedModel, prompt_tokens: int, answer_tokens: int, budget: int
    ) -> None:
        room = prompt_tokens + 4 * answer_tokens + 4 * ADDED_TOKENS
        options = EngineOptions(max_context=room, kv_tokens=4 * room, state_checkpoint_bytes=budget)
        self._prompt_tokens = prompt_tokens
        self._answer_tokens = answer_tokens
        self._device = model.decoder.device
        self._owner = TorchProgram(model, options)
        self.state_bytes = model.decoder.new_pool(1).row_bytes

    def run(self, seed: int) -> dict[str, float]:
        """Return the seconds to the first token of each prompt of one conversation."""
        first = _drawn(self._prompt_tokens, 2 * seed)
        seconds, answer = self._answer(first)
        found = {"first prompt": seconds}
        found["the same again"], _ = self._answer(first)
        following = _drawn(ADDED_TOKENS, 2 * seed + 1)
        found["next turn"], _ = self._answer([*first, *answer, *following])
        # The generation prompt, whose last tokens the history renders otherwise.
        found["next turn, other end"], _ = self._answer([*first[:-5], *answer, *following])
        return found

    def _answer(self, text: list[int]) -> tuple[float, list[int]]:
        self._settle()
        started = time.perf_counter()
        sequence = self._owner.open(SequenceRequest(tuple(text), GREEDY)).sequence
        answer = [self._first(sequence)]
        seconds = time.perf_counter() - started
        while len(answer) < self._answer_tokens:
            batch = self._owner.decode([sequence], [self._answer_tokens], None)
            self._owner.commit(batch, [CommitDecision(1)])
            answer += batch.rows[0].tokens
        self._owner.release(sequence)
        return seconds, answer

    def _first(self, sequence: SequenceId) -> int:
        while True:
            batch = self._owner.prefill(sequence, None).batch
            if batch is not None:
                self._owner.commit(batch, [CommitDecision(1)])
                return batch.rows[0].tokens[0]

    def _settle(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)


def _drawn(tokens: int, seed: int) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    drawn: list[int] = torch.randint(0, 200_000, (tokens,), generator=generator).tolist()
    return drawn


if __name__ == "__main__":
    main()
