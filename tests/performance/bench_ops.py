"""Choosing tokens on one core: free rows, constrained rows, penalties, and a speculative round.

The CUDA figures come from ``tools/gpu_ops.py bench``, which needs a GPU.
"""

from __future__ import annotations

import pytest
import torch

from ninfer.contract import GREEDY_PRESET, SamplingParameters
from ninfer.ops import SamplingBatch, SamplingRow, masked_sampling, speculative_acceptance
from support.devices import DEVICES
from support.packed_masks import packed

DOMAINS = [49_152, 248_320]
SAMPLED = SamplingParameters(temperature=0.7, top_p=0.8)
WAYS = {
    "greedy, free": (GREEDY_PRESET, None),
    "greedy, half allowed": (GREEDY_PRESET, 2),
    "sampled, free": (SAMPLED, None),
    "sampled, half allowed": (SAMPLED, 2),
    "sampled, 0.05 % allowed": (SAMPLED, 2000),
    "sampled, penalised": (SamplingParameters(temperature=0.7, presence_penalty=1.5), None),
}


def mask(domain: int, one_in: int, device: str) -> torch.Tensor:
    """Return one row that allows every ``one_in``-th token of a shuffled vocabulary."""
    generator = torch.Generator().manual_seed(7)
    allowed = torch.randperm(domain, generator=generator)[: domain // one_in]
    return packed([allowed.tolist()], domain).to(device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("domain", DOMAINS)
def test_one_row(benchmark, domain, way, device):
    benchmark.group = f"one row, V = {domain}, {device}"
    parameters, one_in = WAYS[way]
    torch.manual_seed(0)
    logits = (torch.randn(1, domain) * 4).to(device)
    row = SamplingRow(parameters, 5, constrained=one_in is not None)
    batch = SamplingBatch.pack([row], device)
    masks = None if one_in is None else mask(domain, one_in, device)
    counts = torch.zeros((1, domain), dtype=torch.int32, device=device)
    counts[0, ::300] = 1
    sampled = benchmark(lambda: masked_sampling(logits, batch, masks, counts).tokens.tolist())
    assert 0 <= sampled[0] < domain


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("drafts", [3, 15])
@pytest.mark.parametrize("constrained", [False, True], ids=["free", "half allowed"])
def test_one_round_of_drafts(benchmark, constrained, drafts, device):
    benchmark.group = f"one round of {drafts} drafts, V = 49152, {device}"
    domain = DOMAINS[0]
    torch.manual_seed(0)
    logits = (torch.randn(1, drafts + 1, domain) * 4).to(device)
    batch = SamplingBatch.pack([SamplingRow(SAMPLED, 5, constrained=constrained)], device)
    proposed = logits[:, :-1].argmax(2)
    extents = torch.tensor([drafts], dtype=torch.int32, device=device)
    masks = mask(domain, 2, device).expand(1, drafts + 1, -1).contiguous()
    accepted = benchmark(
        lambda: speculative_acceptance(
            logits, batch, proposed, extents, masks=masks
        ).accepted.tolist()
    )
    assert 0 <= accepted[0] <= drafts
