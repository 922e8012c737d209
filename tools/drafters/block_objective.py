"""What block drafters learn: the tokens that followed, the sooner the more they count."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from drafters.block import CANDIDATES, Anchors, BlockDrafter, anchors_of, is_followed
from drafters.lesson import Lesson
from drafters.selection import Selection
from drafters.shortlist import Shortlist
from drafters.target import Target

GAMMA = 4.0
"""Places over which a draft's weight falls by e."""
PER_ANSWER = 0.25
"""Blocks per answer token."""
ENOUGH_COLUMNS = 1 << 15
"""Block columns that are evaluated at once, about."""


class BlockObjective:
    """Loss and acceptance of a block drafter over the tokens that it may propose."""

    def __init__(self, drafter: BlockDrafter, target: Target, shortlist: Shortlist) -> None:
        self.drafter, self._target, self._list = drafter, target, shortlist
        self._generator = torch.Generator(target.device).manual_seed(0)

    def loss(self, lesson: Lesson) -> Tensor:
        """Return the weighted mean cross entropy, with that of the candidates if there are any.

        Math: Σ w_k CE(u_k, x_{F+k}) / Σ w_k, w_k = exp(−(k − 1) / γ); the candidates' term is
              softmax(E_k) with the true predecessor, over the places whose truth is a candidate.
        """
        anchors = anchors_of(lesson.answered, PER_ANSWER, self._generator)
        hidden, places, wanted = self._states(lesson, anchors)
        truth, before = _around(lesson.tokens, places, anchors)
        truth = self._list.place_of(truth)
        chosen = Selection.of(wanted & (truth >= 0))
        k = torch.arange(self.drafter.plan.block, device=hidden.device)
        weight = chosen.of_each(torch.exp(-k / GAMMA).expand(wanted.shape))
        hidden, before = chosen.rows(hidden), chosen.of_each(before)
        truth = chosen.of_each(truth).clamp_min(0)
        logits = functional.linear(hidden, self._list.head).float()
        loss = chosen.mean(functional.cross_entropy(logits, truth, reduction="none"), weight)
        if not self.drafter.plan.selector_rank:
            return loss
        values, ids = logits.topk(CANDIDATES, dim=-1)
        right = ids == truth[:, None]
        scores = self.drafter.energies(hidden, values, self._list.ids[ids], before)
        entropy = -scores.log_softmax(-1).masked_fill(~right, 0.0).sum(-1)
        return loss + chosen.mean(entropy, weight * right.any(-1))

    @torch.no_grad()
    def accepted(self, lesson: Lesson, drafts: int) -> Tensor:
        """Return how many leading drafts are what was written, int64[B, T], by the anchor's column.

        −1 stands where no answer token follows.
        """
        result = torch.full_like(lesson.tokens, -1)
        everything = anchors_of(lesson.answered, 1.0, None)
        columns = self.drafter.plan.block + 1
        step = max(1, ENOUGH_COLUMNS // (len(lesson.tokens) * columns))
        for first in range(0, everything.columns.shape[1], step):
            anchors = Anchors(*(part[:, first : first + step] for part in everything))
            hidden, places, wanted = self._states(lesson, anchors)
            truth, _ = _around(lesson.tokens, places, anchors)
            anchor = lesson.tokens.gather(1, anchors.columns)
            chosen = self._walk(hidden[:, :, :drafts], anchor)
            right = (chosen == truth[:, :, :drafts]) & wanted[:, :, :drafts]
            lengths = right.long().cumprod(-1).sum(-1)
            lengths = torch.where(anchors.real, lengths, result.gather(1, anchors.columns))
            result.scatter_(1, anchors.columns, lengths)
        return result

    def _states(self, lesson: Lesson, anchors: Anchors) -> tuple[Tensor, Tensor, Tensor]:
        plan = self.drafter.plan
        hidden = self.drafter(lesson.streams, lesson.tokens, self._target, anchors)
        places, wanted = is_followed(lesson.answered, anchors, plan.block)
        return hidden.to(self._target.dtype), places, wanted

    def _walk(self, hidden: Tensor, anchor: Tensor) -> Tensor:
        """Return the greedy drafts [B, A, K] after anchors [B, A]."""
        logits = functional.linear(hidden, self._list.head).float()
        if not self.drafter.plan.selector_rank:
            return self._list.ids[logits.argmax(-1)]
        values, ids = logits.topk(CANDIDATES, dim=-1)
        ids, chosen, before = self._list.ids[ids], [], anchor.flatten()
        for place in range(hidden.shape[2]):
            here = ids[:, :, place].flatten(0, 1)
            scores = self.drafter.energies(
                hidden[:, :, place].flatten(0, 1), values[:, :, place].flatten(0, 1), here, before
            )
            before = here.gather(1, scores.argmax(-1, keepdim=True))[:, 0]
            chosen.append(before.view(anchor.shape))
        return torch.stack(chosen, dim=-1)


def _around(tokens: Tensor, places: Tensor, anchors: Anchors) -> tuple[Tensor, Tensor]:
    """Return the tokens in the places and those before them, [B, A, K] each."""
    truth = tokens.gather(1, places.flatten(1)).view(places.shape)
    anchor = tokens.gather(1, anchors.columns)[..., None]
    return truth, torch.cat((anchor, truth[..., :-1]), dim=-1)
