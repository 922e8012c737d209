"""Penalties come before the mask, for greedy rows too, and only where a row asks for them."""

import pytest
import torch

from ninfer.contract import SamplingParameters
from ninfer.ops import SamplingBatch, SamplingRow, count_tokens, masked_sampling
from support.devices import DEVICES
from support.packed_masks import packed


def greedy(presence: float, frequency: float) -> SamplingParameters:
    return SamplingParameters(
        temperature=0.0, presence_penalty=presence, frequency_penalty=frequency
    )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("presence", "frequency", "best"),
    [
        (0.0, 0.0, 0),
        (1.0, 0.0, 0),
        (2.0, 0.0, 2),
        (0.0, 0.5, 1),
        (1.5, 0.5, 2),
        (-2.0, 0.0, 0),
        (0.0, -1.0, 0),
    ],
)
@pytest.mark.parametrize("domain", [3, 6001])
def test_greedy_takes_the_best_adjusted_logit(device, presence, frequency, best, domain):
    logits = torch.full((1, domain), -50.0)
    logits[0, :3] = torch.tensor([4.0, 3.5, 2.5])
    counts = torch.zeros((1, domain), dtype=torch.int32)
    counts[0, :3] = torch.tensor([3, 1, 0], dtype=torch.int32)
    batch = SamplingBatch.pack([SamplingRow(greedy(presence, frequency), 0)], device)
    tokens = masked_sampling(logits.to(device), batch, None, counts.to(device)).tokens
    assert tokens.tolist() == [best]


@pytest.mark.parametrize("device", DEVICES)
def test_a_reward_can_lift_a_token_into_the_support(device):
    logits = torch.linspace(3.0, 2.0, 6001)[None].contiguous()
    counts = torch.zeros((1, 6001), dtype=torch.int32)
    counts[0, 6000] = 2
    batch = SamplingBatch.pack([SamplingRow(greedy(0.0, -2.0), 0)], device)
    sampled = masked_sampling(logits.to(device), batch, None, counts.to(device))
    assert sampled.tokens.tolist() == [6000]


@pytest.mark.parametrize("device", DEVICES)
def test_each_row_reads_its_own_counts_and_only_if_penalised(device):
    logits = torch.tensor([[2.0, 1.0]] * 3).to(device)
    counts = torch.tensor([[0, 0], [1, 0], [9, 9]], dtype=torch.int32).to(device)
    rows = [
        SamplingRow(greedy(1.5, 0.0), 0, counts_row=1),
        SamplingRow(greedy(1.5, 0.0), 0, counts_row=0),
        SamplingRow(greedy(0.0, 0.0), 0, counts_row=1),
    ]
    tokens = masked_sampling(logits, SamplingBatch.pack(rows, device), None, counts).tokens
    assert tokens.tolist() == [1, 0, 0]


@pytest.mark.parametrize("device", DEVICES)
def test_the_penalty_cannot_bring_back_a_masked_token(device):
    logits = torch.tensor([[5.0, 1.0, 0.0]]).to(device)
    counts = torch.tensor([[7, 1, 0]], dtype=torch.int32).to(device)
    rows = [SamplingRow(greedy(-2.0, -2.0), 0, constrained=True)]
    masks = packed([{1, 2}], 3).to(device)
    batch = SamplingBatch.pack(rows, device)
    assert masked_sampling(logits, batch, masks, counts).tokens.tolist() == [1]


@pytest.mark.parametrize("device", DEVICES)
def test_only_committed_tokens_are_counted(device):
    counts = torch.zeros((3, 5), dtype=torch.int32, device=device)
    tokens = torch.tensor([[4, 4, 1], [2, 3, 0]], device=device)
    count_tokens(counts, torch.tensor([2, 0]).to(device), tokens, torch.tensor([2, 1]).to(device))
    assert counts.tolist() == [[0, 0, 1, 0, 0], [0] * 5, [0, 0, 0, 0, 2]]
