"""Drives a torch program over a tiny model by hand, one round at a time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import torch

from ninfer.contract import (
    CommitDecision,
    EngineOptions,
    Lookahead,
    MaskProvider,
    PendingBatch,
    ResumeRoute,
    ResumeState,
    SamplingParameters,
    SequenceId,
    SequenceRequest,
    mask_bit,
)
from ninfer.runtime.loading import LoadedModel, load_model
from ninfer.runtime.program import TorchProgram
from support.tiny_models import write_checkpoint

GREEDY = SamplingParameters(temperature=0.0)
SAMPLED = SamplingParameters(
    temperature=0.9, top_p=0.95, presence_penalty=0.6, frequency_penalty=0.3, seed=11
)
ROUTES = [ResumeRoute.SNAPSHOT, ResumeRoute.REPLAY]
GO_ON = CommitDecision(accepted_tokens=1)
CANCEL = CommitDecision(accepted_tokens=0, cancelled=True)
FAIL = CommitDecision(accepted_tokens=0, failed=True)
LAST = CommitDecision(accepted_tokens=1, terminal=True)


def tiny_model(folder: Path, name: str = "llama", seed: int = 0) -> LoadedModel:
    """Write and load a random float32 model."""
    torch.set_num_threads(1)
    return load_model(write_checkpoint(folder, name, seed=seed), dtype=torch.float32)


def program(model: LoadedModel, **options: int) -> TorchProgram:
    """Return a program with room for eight rows of 256 tokens unless told otherwise."""
    chosen = {"max_concurrency": 8, "max_context": 256, "prefill_chunk": 32} | options
    return TorchProgram(model, EngineOptions(**chosen))  # type: ignore[arg-type]


def prompt(length: int, seed: int) -> tuple[int, ...]:
    """Return a random prompt."""
    generator = torch.Generator().manual_seed(1000 + seed)
    return tuple(torch.randint(0, 256, (length,), generator=generator).tolist())


class RowSets:
    """Implements contract.MaskProvider: one allowed set per row, None for free rows."""

    def __init__(self, *rows: Collection[int] | None) -> None:
        self.rows = rows
        self.fill_calls = 0

    def is_constrained(self, row: int) -> bool:
        return self.rows[row] is not None

    def fill(
        self, drafts: Sequence[Sequence[int]], masks: memoryview
    ) -> Sequence[Lookahead | None]:
        self.fill_calls += 1
        assert len(drafts) == len(self.rows)
        return [self._fill_row(row, masks) for row in range(len(self.rows))]

    def uploaded(self, row: int, byte_count: int) -> None:
        raise AssertionError("nothing is uploaded on the CPU")

    def _fill_row(self, row: int, masks: memoryview) -> Lookahead | None:
        allowed = self.rows[row]
        if allowed is None:
            return None
        assert masks.shape is not None
        words = [0] * masks.shape[2]
        for token in allowed or (0,):
            word, bit = mask_bit(token)
            words[word] |= bit
        for word, value in enumerate(words):
            masks[row, 0, word] = value - (value >> 31 << 32)
        return Lookahead(positions=1, reachable=1, dead_ends=int(not allowed), filled=1)


def open_row(
    owner: TorchProgram,
    token_ids: Sequence[int],
    sampling: SamplingParameters = GREEDY,
    *,
    reuse: bool = False,
) -> SequenceId:
    """Open a sequence."""
    return owner.open(SequenceRequest(tuple(token_ids), sampling, reuse)).sequence


def prefill(
    owner: TorchProgram, sequence: SequenceId, masks: MaskProvider | None = None
) -> PendingBatch:
    """Compute a prompt to its end and return the batch with its first token."""
    while True:
        step = owner.prefill(sequence, masks)
        if step.batch is not None:
            return step.batch


def start(
    owner: TorchProgram, sequence: SequenceId, masks: MaskProvider | None = None
) -> list[int]:
    """Compute a prompt, commit its first token, and return it."""
    return commit_all(owner, prefill(owner, sequence, masks))[0]


def commit_all(owner: TorchProgram, batch: PendingBatch) -> list[list[int]]:
    """Accept everything and return the tokens of every row."""
    owner.commit(batch, [CommitDecision(len(row.tokens)) for row in batch.rows])
    return [list(row.tokens) for row in batch.rows]


def decode(
    owner: TorchProgram, sequences: Sequence[SequenceId], masks: MaskProvider | None = None
) -> PendingBatch:
    """Run one round."""
    return owner.decode(sequences, [100] * len(sequences), masks)


def continue_rows(
    owner: TorchProgram, sequences: Sequence[SequenceId], rounds: int
) -> list[list[int]]:
    """Run rounds over rows and return the tokens of every row."""
    tokens: list[list[int]] = [[] for _ in sequences]
    for _ in range(rounds):
        for row, added in zip(tokens, commit_all(owner, decode(owner, sequences)), strict=True):
            row += added
    return tokens


def restore(owner: TorchProgram, state: ResumeState) -> SequenceId:
    """Resume and replay to the old frontier."""
    row = owner.resume(state)
    while state.route is ResumeRoute.REPLAY and not owner.replay(row).complete:
        pass
    return row


def solo(
    model: LoadedModel,
    token_ids: Sequence[int],
    tokens: int,
    sampling: SamplingParameters = GREEDY,
    *,
    max_context: int = 256,
) -> list[int]:
    """Return what a sequence answers when it runs alone and undisturbed."""
    owner = program(model, max_concurrency=1, max_context=max_context)
    sequence = open_row(owner, token_ids, sampling)
    return start(owner, sequence) + continue_rows(owner, [sequence], tokens - 1)[0]
