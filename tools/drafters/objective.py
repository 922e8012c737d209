"""What the drafter learns: the target's own next-token law, several steps ahead."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from drafters.mtp import MtpDrafter
from drafters.target import Target

STEP_WEIGHT = 0.8
"""How much less each further step counts."""


def inputs_of(target: Target, tokens: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """Return what the drafter reads of whole sequences.

    Shapes: hidden [B, T, H]; followers [B, T - 1 - steps, steps, H], the embeddings of the
            ``steps`` tokens after every column that has a token to predict at the last step.
    """
    columns = tokens.shape[1] - 1 - steps
    after = [target.embedding[tokens[:, 1 + j : 1 + j + columns]] for j in range(steps)]
    return target.hidden(tokens), torch.stack(after, dim=2)


def loss_of(
    drafter: MtpDrafter, target: Target, tokens: Tensor, answered: Tensor, steps: int
) -> Tensor:
    """Return the mean cross entropy between the target's law and the drafter's.

    Math: Σ_j 0.8^(j−1) · CE(softmax(head h_{t+j}), softmax(head g_t^j)), over every t for which
          x_{t+1+j} belongs to an answer.
    """
    hidden, followers = inputs_of(target, tokens, steps)
    columns = followers.shape[1]
    total = hidden.new_zeros((), dtype=torch.float32)
    for step, guess in enumerate(drafter(hidden[:, :columns], followers, steps), start=1):
        wanted = answered[:, 1 + step : 1 + step + columns]
        truth = functional.linear(hidden[:, step : step + columns][wanted], target.head)
        ours = functional.linear(guess[wanted].to(target.dtype), target.head)
        law = truth.float().softmax(-1)
        entropy = -(law * ours.float().log_softmax(-1)).sum(-1).mean()
        total = total + STEP_WEIGHT ** (step - 1) * entropy
    return total


@torch.no_grad()
def acceptance(
    drafter: MtpDrafter, target: Target, tokens: Tensor, answered: Tensor, steps: int
) -> tuple[list[float], float]:
    """Return how often draft j is right given that all before it were, and the mean accepted.

    Math: a draft is right where it is the target's own argmax after the true prefix.
    """
    hidden, followers = inputs_of(target, tokens, steps)
    columns = followers.shape[1]
    wanted = answered[:, 2 : 2 + columns] & answered[:, 1 + steps : 1 + steps + columns]
    alive = torch.ones(int(wanted.sum()), dtype=torch.bool, device=tokens.device)
    rates, accepted = [], 0.0
    for step, guess in enumerate(drafter(hidden[:, :columns], followers, steps), start=1):
        best = functional.linear(hidden[:, step : step + columns][wanted], target.head).argmax(-1)
        ours = functional.linear(guess[wanted].to(target.dtype), target.head).argmax(-1)
        before = int(alive.sum())
        alive &= best == ours
        # The chain goes on with the true token, so a sampled one that differs ends it too.
        alive &= best == tokens[:, 1 + step : 1 + step + columns][wanted]
        rates.append(int(alive.sum()) / max(before, 1))
        accepted += int(alive.sum()) / max(len(alive), 1)
    return rates, accepted
