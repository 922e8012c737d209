"""The block drafters as training sees them: many blocks of one sequence at once.

Names: tensors are called as ninfer.runtime reads them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from drafters.block_layer import BlockLayer, BlockView
from drafters.target import Shape, Target, rotation

CANDIDATES = 16
BLOCKS_STEP = 8
"""Blocks of a row are made up to multiples of this: few shapes."""


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """What a block drafter is made of; ``conv_group`` 0 and ``selector_rank`` 0 give DFlash.

    ``block`` counts drafts, the anchor left out.
    """

    kind: str
    layers: int
    target_layers: tuple[int, ...]
    mask_token: int
    block: int
    conv_group: int = 0
    selector_rank: int = 0


class Anchors(NamedTuple):
    """The columns that blocks start from.

    Shapes: columns int64[B, A]; real bool[B, A], false where a row has fewer.
    """

    columns: Tensor
    real: Tensor


class BlockDrafter(nn.Module):
    """Fills a block of masks in one pass over the target's inner streams.

    Math: c_t = norm_c(fc · streams_t). The block [x_F, mask · K] at positions F to F + K sees the
          context before F and all of itself; norm(x) in the place of mask k predicts x_{F + k}.
          With a selector, E_k[c] = u_k[c] + ⟨A[x_{F + k − 1}] · (W h_k), B[c]⟩ over the 16 best.
    """

    def __init__(self, shape: Shape, plan: BlockPlan) -> None:
        super().__init__()
        s, self.shape, self.plan = shape, shape, plan
        width = s.hidden * len(plan.target_layers)
        self.fc = nn.Parameter(torch.randn(s.hidden, width) * 0.01)
        self.context_norm = nn.Parameter(torch.ones(s.hidden))
        self.norm = nn.Parameter(torch.ones(s.hidden))
        self.layers = nn.ModuleList(BlockLayer(shape, plan.conv_group) for _ in range(plan.layers))
        self.selector = nn.ParameterDict()
        if rank := plan.selector_rank:
            self.selector["predecessor"] = nn.Parameter(torch.randn(s.vocab, rank))
            self.selector["successor"] = nn.Parameter(torch.zeros(s.vocab, rank))
            self.selector["hidden"] = nn.Parameter(torch.randn(rank, s.hidden) * s.hidden**-0.5)

    @torch.no_grad()
    def start_from(self, target: Target) -> None:
        """Copy the target's last layers; the context is the last stream that is read, at first."""
        first = target.shape.layers - self.plan.layers
        for index, layer in enumerate(self.layers):
            layer.start_from(target, first + index)  # type: ignore[operator]
        self.norm.copy_(target.weights["model.norm.weight"])
        self.fc[:, -self.shape.hidden :] += torch.eye(self.shape.hidden, device=self.fc.device)

    def forward(self, streams: Tensor, tokens: Tensor, target: Target, anchors: Anchors) -> Tensor:
        """Return the final states in the masks' places, [B, A, K, H]."""
        plan, eps = self.plan, self.shape.norm_eps
        joined = functional.linear(streams, self.fc)
        scale = self.context_norm.to(joined.dtype)
        context = functional.rms_norm(joined, (joined.shape[-1],), scale, eps)
        places = anchors.columns[..., None] + torch.arange(plan.block + 1, device=tokens.device)
        ids = torch.full_like(places, plan.mask_token)
        ids[..., 0] = tokens.gather(1, anchors.columns)
        x = target.embedding[ids].flatten(1, 2)
        view = self._view(places, context)
        for layer in self.layers:
            x = layer(x, context, view)
        x = functional.rms_norm(x, (x.shape[-1],), self.norm.to(x.dtype), eps)
        return x.unflatten(1, (-1, plan.block + 1))[:, :, 1:]

    def energies(self, hidden: Tensor, logits: Tensor, ids: Tensor, before: Tensor) -> Tensor:
        """Return the walk's scores of candidates.

        Shapes: hidden [N, H]; logits float32[N, Q] and ids int64[N, Q] of the candidates; before
                int64[N], the tokens they follow; the result float32[N, Q].
        """
        gate = functional.linear(hidden, self.selector["hidden"]).float()
        # Gradients of an embedding, unlike those of an index, bear tokens that come very often.
        left = functional.embedding(before, self.selector["predecessor"]) * gate
        right = functional.embedding(ids, self.selector["successor"])
        return logits + torch.einsum("nr,ncr->nc", left, right)

    def named_tensors(self) -> dict[str, nn.Parameter]:
        """Return the parameters under their names in a drafter's folder."""
        named = {
            "fc.weight": self.fc,
            "hidden_norm.weight": self.context_norm,
            "norm.weight": self.norm,
        }
        for index, layer in enumerate(self.layers):
            named |= layer.named_tensors(f"layers.{index}.")  # type: ignore[operator]
        return named | {f"selector.{name}.weight": w for name, w in self.selector.items()}

    def config(self) -> dict[str, object]:
        """Return the kind's own fields of a drafter's ``config.json``."""
        plan = self.plan
        fields: dict[str, object] = {
            "drafter": plan.kind,
            "layers": plan.layers,
            "target_layers": list(plan.target_layers),
            "mask_token": plan.mask_token,
        }
        if plan.selector_rank:
            fields |= {"conv_group": plan.conv_group, "selector_rank": plan.selector_rank}
        return fields

    def _view(self, places: Tensor, context: Tensor) -> BlockView:
        rows, blocks, positions = places.shape
        columns = torch.arange(context.shape[1], device=places.device)
        before = columns < places[..., :1, None]
        before = before.expand(rows, blocks, positions, len(columns)).flatten(1, 2)
        owner = torch.arange(blocks, device=places.device).repeat_interleave(positions)
        own = (owner[:, None] == owner).expand(rows, -1, -1)
        turns = rotation(self.shape, places.flatten(1)[:, None], context.dtype)
        context_turns = rotation(self.shape, columns, context.dtype)
        seen = torch.cat((before, own), dim=-1)[:, None]
        return BlockView(context_turns, turns, seen, positions)


def anchors_of(answered: Tensor, per_answer: float, generator: torch.Generator | None) -> Anchors:
    """Return columns before answer tokens: a random part of them, or all without a generator.

    Math: a row with n such columns gets ceil(n · per_answer) of them, each once.
    """
    follows = answered[:, 1:]
    counts = follows.sum(1)
    if generator is None:
        wanted, order = counts, follows.to(torch.float32)
    else:
        wanted = (counts * per_answer).ceil().long()
        draw = torch.rand(follows.shape, generator=generator, device=follows.device)
        order = draw.masked_fill(~follows, -1.0)
    columns = order.sort(dim=1, descending=True, stable=True).indices
    blocks = min(-(-int(wanted.max()) // BLOCKS_STEP) * BLOCKS_STEP, follows.shape[1])
    real = torch.arange(blocks, device=follows.device) < wanted[:, None]
    return Anchors(columns[:, :blocks].masked_fill(~real, 0), real)


def default_taps(layers: int, taps: int) -> tuple[int, ...]:
    """Return layers spread evenly from the second to the last but two."""
    if taps == 1 or layers < 5:
        return tuple(sorted({layers // 2, *([0] if taps > 1 else [])}))
    span = layers - 4
    return tuple(1 + round(index * span / (taps - 1)) for index in range(taps))


def is_followed(answered: Tensor, anchors: Anchors, block: int) -> tuple[Tensor, Tensor]:
    """Return the columns [B, A, K] of a block's drafts and which of them an answer has."""
    places = anchors.columns[..., None] + 1 + torch.arange(block, device=answered.device)
    inside = places < answered.shape[1]
    places = places.clamp(max=answered.shape[1] - 1)
    wanted = answered.gather(1, places.flatten(1)).view(places.shape)
    return places, wanted & inside & anchors.real[..., None]
