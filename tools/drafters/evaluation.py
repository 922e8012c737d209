"""How far a drafter comes on text that it never saw, counted as serving goes through it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from drafters.corpus import GREEDY, JSON, Batches, Dialogues
from drafters.lesson import Lesson
from drafters.target import Target

DRAFTS = (1, 2, 3, 5, 7)
"""How many drafts a round may make, for which acceptance is told."""


class Judged(Protocol):
    """Counts leading drafts that are what was written."""

    def accepted(self, lesson: Lesson, drafts: int) -> Tensor:
        """Return the counts int64[B, T] by the anchor's column, −1 where nothing follows."""
        ...


def judge(
    objective: Judged,
    target: Target,
    taps: Sequence[int],
    held_out: Dialogues,
    batch_tokens: int,
    limit: int,
) -> dict[str, object]:
    """Return what is accepted of greedy answers, for JSON and for prose.

    Math: an answer is walked as serving does: from an anchor F with a drafts accepted to F + a + 1.
    """
    greedy = (held_out.flags & GREEDY) > 0
    result: dict[str, object] = {}
    for name, is_json in (("json", True), ("prose", False)):
        chosen = greedy & (((held_out.flags & JSON) > 0) == is_json)
        chosen &= chosen.cumsum(0) <= limit
        dialogues = held_out.where(chosen)
        counts: list[list[int]] = []
        batches, device = Batches(dialogues, batch_tokens, target.device), target.device.type
        for batch in batches.once(random.Random(0)):
            lesson = Lesson.of(batch, target, taps)
            with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
                counts += objective.accepted(lesson, max(DRAFTS)).tolist()
        result[name] = {
            "answers": len(dialogues),
            "answer_tokens": dialogues.answer_tokens,
            "mean_accepted": {str(k): round(_mean_accepted(counts, k), 3) for k in DRAFTS},
            "accepted_per_position": [round(share, 3) for share in _shares(counts, max(DRAFTS))],
        }
    return result


def walk(counts: Sequence[int], drafts: int) -> list[int]:
    """Return the accepted drafts of every round over one answer, by its columns' counts."""
    columns = [column for column, count in enumerate(counts) if count >= 0]
    # The first answer token comes from the prompt's own pass; it is the first anchor.
    column, rounds = (columns[0] + 1 if columns else 0), []
    while column < len(counts) and counts[column] >= 0:
        rounds.append(min(counts[column], drafts))
        column += rounds[-1] + 1
    return rounds


def _mean_accepted(counts: Sequence[Sequence[int]], drafts: int) -> float:
    rounds = [accepted for row in counts for accepted in walk(row, drafts)]
    return sum(rounds) / max(len(rounds), 1)


def _shares(counts: Sequence[Sequence[int]], drafts: int) -> list[float]:
    rounds = [accepted for row in counts for accepted in walk(row, drafts)]
    return [sum(n > place for n in rounds) / max(len(rounds), 1) for place in range(drafts)]
