"""One training run against the clock; drafters trained together share the target's pass."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from drafters.corpus import Batches
from drafters.lesson import Lesson
from drafters.target import Target

WARM_STEPS = 100
TABLE_RATE = 3.0
"""How much faster tables of one row per token learn: most rows are met seldom."""


class Objective(Protocol):
    """What is to become small."""

    @property
    def drafter(self) -> nn.Module:
        """Return what is trained."""
        ...

    def loss(self, lesson: Lesson) -> Tensor:
        """Return the loss of one batch."""
        ...


@dataclass(frozen=True, slots=True)
class Progress:
    """What a run did; ``losses`` are the last means, one for each objective."""

    steps: int
    epochs: float
    losses: tuple[float, ...]


class Pupil:
    """One drafter with its optimizer."""

    def __init__(self, objective: Objective, rate: float, device: torch.device) -> None:
        self._objective, self._device = objective, device.type
        self._optimizer = torch.optim.AdamW(
            _groups(objective.drafter, rate),
            weight_decay=0.01,
            betas=(0.9, 0.98),
            fused=device.type == "cuda",
        )
        self._rates = [float(group["lr"]) for group in self._optimizer.param_groups]
        self._mean: Tensor | None = None

    @property
    def mean_loss(self) -> float:
        """Return the running mean of the loss."""
        return 0.0 if self._mean is None else float(self._mean)

    def learn(self, lesson: Lesson, factor: float) -> None:
        """Take one step at ``factor`` of the full rate."""
        for rate, group in zip(self._rates, self._optimizer.param_groups, strict=True):
            group["lr"] = rate * factor
        with torch.autocast(self._device, torch.bfloat16, enabled=self._device == "cuda"):
            loss = self._objective.loss(lesson)
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self._objective.drafter.parameters(), 1.0)
        self._optimizer.step()
        seen = loss.detach()
        self._mean = seen if self._mean is None else torch.lerp(self._mean, seen, 0.02)


def train(
    objectives: Sequence[Objective],
    target: Target,
    taps: Sequence[int],
    batches: Batches,
    *,
    learning_rate: float,
    until: float,
    seed: int,
) -> Progress:
    """Run AdamW with a cosine that ends at ``until`` of the monotonic clock; one step at least."""
    pupils = [Pupil(objective, learning_rate, target.device) for objective in objectives]
    source, begun, steps, epochs = random.Random(seed), time.monotonic(), 0, 0
    while True:
        groups = batches.groups(source)
        for done, group in enumerate(groups):
            passed = (time.monotonic() - begun) / max(until - begun, 1e-9)
            if passed >= 1 and steps:
                losses = tuple(pupil.mean_loss for pupil in pupils)
                return Progress(steps, epochs + done / len(groups), losses)
            share = 0.5 * (1 + math.cos(math.pi * min(passed, 1.0)))
            factor = min(1.0, (steps + 1) / WARM_STEPS) * max(share, 0.01)
            lesson = Lesson.of(batches.batch(group), target, taps)
            for pupil in pupils:
                pupil.learn(lesson, factor)
            steps += 1
            if steps % 200 == 1:
                losses = tuple(round(pupil.mean_loss, 3) for pupil in pupils)
                print(f"{time.monotonic() - begun:6.1f} s  step {steps}  {losses}", flush=True)
        epochs += 1


def _groups(drafter: nn.Module, rate: float) -> list[dict[str, object]]:
    """Return AdamW's groups: vectors do not decay, tables of token rows learn faster."""
    matrices, vectors, tables = [], [], []
    for name, parameter in drafter.named_parameters():
        if name in ("selector.predecessor", "selector.successor"):
            tables.append(parameter)
        else:
            (matrices if parameter.dim() == 2 else vectors).append(parameter)
    groups: list[dict[str, object]] = [
        {"params": matrices, "lr": rate},
        {"params": vectors, "lr": rate, "weight_decay": 0.0},
    ]
    if tables:
        groups.append({"params": tables, "lr": rate * TABLE_RATE, "weight_decay": 0.0})
    return groups
