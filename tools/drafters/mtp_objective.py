"""What the MTP drafter learns: the target's own next-token law, several steps ahead."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from drafters.law import told_law
from drafters.lesson import Lesson
from drafters.mtp import MtpDrafter
from drafters.selection import Selection
from drafters.shortlist import Shortlist
from drafters.target import Target

STEP_WEIGHT = 0.8
"""How much less each further step counts."""


class MtpObjective:
    """Loss and acceptance of chained steps over the tokens that the drafter may propose."""

    def __init__(
        self, drafter: MtpDrafter, target: Target, shortlist: Shortlist, steps: int
    ) -> None:
        self.drafter, self._target, self._list, self._steps = drafter, target, shortlist, steps

    def loss(self, lesson: Lesson) -> Tensor:
        """Return the mean cross entropy between the target's law and the drafter's.

        Math: Σ_j 0.8^(j−1) · CE(p_{t+j}, softmax(head g_t^j)) over the shortlist, over every t for
              which x_{t+1+j} belongs to an answer; p is the law that is told behind h_{t+j}.
        """
        padded = lesson.padded(self._steps + 1)
        hidden, followers = padded.hidden, self._followers(padded, self._steps)
        columns = followers.shape[1]
        total = hidden.new_zeros((), dtype=torch.float32)
        guesses = self.drafter(hidden[:, :columns], followers, self._steps)
        for step, guess in enumerate(guesses, start=1):
            there = slice(1 + step, 1 + step + columns)
            written = self._list.place_of(padded.tokens[:, there])
            held = padded.is_json[:, None].expand_as(written)
            chosen = Selection.of(padded.answered[:, there] & ~(held & (written < 0)))
            law = told_law(
                chosen.rows(hidden[:, step : step + columns]),
                chosen.of_each(written),
                chosen.of_each(held),
                self._list,
            )
            ours = functional.linear(chosen.rows(guess).to(self._target.dtype), self._list.head)
            entropy = chosen.mean(-(law * ours.float().log_softmax(-1)).sum(-1))
            total = total + STEP_WEIGHT ** (step - 1) * entropy
        return total

    @torch.no_grad()
    def accepted(self, lesson: Lesson, drafts: int) -> Tensor:
        """Return how many leading drafts are what was written, int64[B, T], by the anchor's column.

        Math: the anchor of pair (h_t, x_{t+1}) is x_{t+1}; its first draft stands for x_{t+2}, and
              a chain goes on with its own drafts, which are the written ones as long as it counts.
        −1 stands where no answer token follows.
        """
        padded = lesson.padded(drafts + 1)
        tokens, answered = padded.tokens, padded.answered
        followers = self._followers(padded, drafts)
        columns = followers.shape[1]
        lengths = torch.zeros((len(tokens), columns), dtype=torch.int64, device=tokens.device)
        alive = torch.ones_like(lengths, dtype=torch.bool)
        guesses = self.drafter(padded.hidden[:, :columns], followers, drafts)
        for step, guess in enumerate(guesses, start=1):
            logits = functional.linear(guess.to(self._target.dtype), self._list.head)
            chosen = self._list.ids[logits.argmax(-1)]
            there = slice(1 + step, 1 + step + columns)
            alive &= (chosen == tokens[:, there]) & answered[:, there]
            lengths += alive
        result = torch.full_like(tokens, -1)
        result[:, 1 : 1 + columns] = lengths.masked_fill(~answered[:, 2 : 2 + columns], -1)
        return result[:, : lesson.tokens.shape[1]]

    def _followers(self, lesson: Lesson, steps: int) -> Tensor:
        """Return the embeddings of the ``steps`` tokens after every column, [B, T', steps, H].

        T' is the number of columns that have a token to predict at the last step.
        """
        columns = lesson.tokens.shape[1] - 1 - steps
        embedded = self._target.embedding[lesson.tokens]
        return torch.stack([embedded[:, 1 + j : 1 + j + columns] for j in range(steps)], dim=2)
