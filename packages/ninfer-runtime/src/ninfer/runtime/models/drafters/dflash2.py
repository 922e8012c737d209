"""A block drafter with convolutions and a walk over candidates, which knows what it was drawn from.

Source: specification 8.2 and 9.3; reference contract, section 3.4.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ninfer.contract import RngPurpose, SpeculativeBackend
from ninfer.ops import PROPOSAL_CANDIDATES, SparseProposal, uniforms
from ninfer.runtime.models.decoder import Decoder
from ninfer.runtime.models.drafters.config import DrafterConfig
from ninfer.runtime.models.drafters.dflash import DflashDrafter
from ninfer.runtime.models.drafters.drafter import DraftKeys, Proposal
from ninfer.runtime.models.drafters.head import DraftHead
from ninfer.runtime.models.weights import WeightReader


class Dflash2Drafter(DflashDrafter):
    """Implements: Drafter; the block pass of :class:`DflashDrafter`, then the selector.

    Math: C_i are the 16 best tokens of place i by the head's logits u_i. With p the anchor for
          i = 0, else the token chosen before, E_i[c] = u_i[c] + ⟨A[p] · (W h_i), B[C_i[c]]⟩.
          T ≤ 0 takes the best and q is one-hot; else q_i = softmax(E_i / T) and the draft is its
          inverse CDF at u(F + i, DFLASH2_PROPOSAL). Drafts, C and q stay on the device.
    """

    backend = SpeculativeBackend.DFLASH2

    def __init__(
        self, config: DrafterConfig, weights: WeightReader, target: Decoder, head: DraftHead
    ) -> None:
        super().__init__(config, weights, target, head)
        rank, vocab, hidden = config.selector_rank, target.config.vocab_rows, target.config.hidden
        self._predecessor = weights.read("selector.predecessor.weight", (vocab, rank))
        self._successor = weights.read("selector.successor.weight", (vocab, rank))
        modulation = weights.read("selector.hidden.weight", (rank, hidden))
        self._modulation = target.strategy.prepare(modulation)

    def _choose(self, keys: DraftKeys, hidden: Tensor, logits: Tensor) -> Proposal:
        unary, places = _candidates(logits.float())
        ids = self._head.tokens(places)
        modulation = self._modulation(hidden.flatten(0, 1)).view(*hidden.shape[:2], -1)
        successors = self._successor[ids].float()
        draws = _draws(keys, ids.shape[1])
        chosen, drafts, laws = keys.anchors, [], []
        for place in range(ids.shape[1]):
            left = (self._predecessor[chosen] * modulation[:, place]).float()
            energies = unary[:, place] + torch.einsum("br,bcr->bc", left, successors[:, place])
            q = _law(energies, keys.temperatures)
            chosen = _drawn(q, ids[:, place], draws[:, place])
            drafts.append(chosen)
            laws.append(q)
        return Proposal(torch.stack(drafts, 1), SparseProposal(ids, torch.stack(laws, 1)))


def _draws(keys: DraftKeys, drafts: int) -> Tensor:
    """Return the uniform number of every draft, float64[B, K']."""
    seeds, zeros = keys.seeds.unsqueeze(1), torch.zeros_like(keys.seeds).unsqueeze(1)
    positions = keys.positions.unsqueeze(1) + torch.arange(drafts, device=zeros.device)
    return uniforms(seeds, positions, zeros + RngPurpose.DFLASH2_PROPOSAL, zeros)


def _law(energies: Tensor, temperatures: Tensor) -> Tensor:
    """Return what one place's draft is drawn from, float32[B, Q]."""
    is_greedy = (temperatures <= 0).unsqueeze(1)
    best = energies.argmax(1, keepdim=True)
    divisor = temperatures.unsqueeze(1).masked_fill(is_greedy, 1.0)
    q = torch.softmax(energies / divisor, dim=1)
    return torch.where(is_greedy, torch.zeros_like(q).scatter_(1, best, 1.0), q)


def _drawn(q: Tensor, ids: Tensor, draws: Tensor) -> Tensor:
    """Return the ids int64[B] at which the summed law exceeds the draws."""
    mass = q.double().cumsum(1)
    place = (mass <= draws.unsqueeze(1) * mass[:, -1:]).sum(1, keepdim=True)
    return ids.gather(1, place).squeeze(1)


def _candidates(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Return the best logits and their places [B, K', Q], ties in the order of the places."""
    limit = min(PROPOSAL_CANDIDATES, logits.shape[-1])
    values, ids = logits.topk(limit, dim=-1)
    ids, by_id = ids.sort(dim=-1)
    values, by_value = values.gather(-1, by_id).sort(dim=-1, descending=True, stable=True)
    return values, ids.gather(-1, by_value)
