"""What block drafters learn: the target's law of the tokens that follow, the sooner the more."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from drafters.block import CANDIDATES, Anchors, BlockDrafter, anchors_of, is_followed
from drafters.law import told_law
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

        Math: Σ w_k CE(p_k, softmax(u_k)) / Σ w_k, w_k = exp(−(k − 1) / γ), p_k the law that is told
              before x_{F+k}; the candidates' term is the same of softmax(E_k) with the true
              predecessor, over the part of p_k that they hold.
        """
        anchors = anchors_of(lesson.answered, PER_ANSWER, self._generator)
        hidden, places, wanted = self._states(lesson, anchors)
        truth, before = _around(lesson.tokens, places, anchors)
        written = self._list.place_of(truth)
        held = lesson.is_json[:, None, None].expand_as(wanted)
        chosen = Selection.of(wanted & ~(held & (written < 0)))
        law = told_law(
            lesson.hidden.flatten(0, 1)[chosen.of_each(_flat(places - 1, lesson.tokens.shape[1]))],
            chosen.of_each(written),
            chosen.of_each(held),
            self._list,
        )
        k = torch.arange(self.drafter.plan.block, device=hidden.device)
        weight = chosen.of_each(torch.exp(-k / GAMMA).expand(wanted.shape))
        hidden, before = chosen.rows(hidden), chosen.of_each(before)
        logits = functional.linear(hidden, self._list.head).float()
        loss = chosen.mean(-(law * logits.log_softmax(-1)).sum(-1), weight)
        if not self.drafter.plan.selector_rank:
            return loss
        ids = logits.detach().bfloat16().topk(CANDIDATES, dim=-1).indices
        values = logits.gather(1, ids)
        scores = self.drafter.energies(hidden, values, self._list.ids[ids], before)
        entropy = -(law.gather(1, ids) * scores.log_softmax(-1)).sum(-1)
        return loss + chosen.mean(entropy, weight)

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


def _flat(places: Tensor, columns: int) -> Tensor:
    """Return columns [B, A, K] of rows as places in all rows behind one another."""
    rows = torch.arange(len(places), device=places.device)
    return places + columns * rows[:, None, None]


def _around(tokens: Tensor, places: Tensor, anchors: Anchors) -> tuple[Tensor, Tensor]:
    """Return the tokens in the places and those before them, [B, A, K] each."""
    truth = tokens.gather(1, places.flatten(1)).view(places.shape)
    anchor = tokens.gather(1, anchors.columns)[..., None]
    return truth, torch.cat((anchor, truth[..., :-1]), dim=-1)
