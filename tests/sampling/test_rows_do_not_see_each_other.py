"""A row's token depends on its own logits, mask, counts and key alone."""

import random

import pytest
import torch

from ninfer.contract import SamplingParameters
from ninfer.ops import SampledTokens, SamplingBatch, SamplingRow, masked_argmax, masked_sampling
from support.devices import DEVICES
from support.packed_masks import packed


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("domain", [97, 4999])
def test_free_rows_among_constrained_ones_equal_their_run_alone(device, domain):
    torch.manual_seed(1)
    rng = random.Random(1)
    logits = torch.randn(4, domain).to(device)
    rows = [SamplingRow(SamplingParameters(seed=9), 50 + b) for b in range(4)]
    alone = masked_sampling(logits, SamplingBatch.pack(rows, device)).tokens.tolist()
    legal = set(range(0, domain, 3))
    for _ in range(6):
        order = rng.sample(range(4), 4)
        bound = rng.randrange(4)
        mixed = [
            SamplingRow(rows[b].parameters, rows[b].position, constrained=b == bound) for b in order
        ]
        masks = packed([legal if b == bound else None for b in order], domain).to(device)
        batch = SamplingBatch.pack(mixed, device)
        tokens = masked_sampling(logits[order], batch, masks).tokens.tolist()
        for b, token in zip(order, tokens, strict=True):
            assert token in legal if b == bound else token == alone[b]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("padding", [1, 8, 64])
def test_padded_logit_rows_are_read_within_the_domain(device, dtype, padding):
    torch.manual_seed(2)
    domain = 5003
    padded = torch.full((6, domain + padding), float("nan"), dtype=dtype, device=device)
    padded[:, :domain] = torch.randn(6, domain, device=device).to(dtype)
    rows = [SamplingRow(SamplingParameters(), b) for b in range(6)]
    batch = SamplingBatch.pack(rows, device)
    tight = masked_sampling(padded[:, :domain].contiguous(), batch)
    wide = masked_sampling(padded[:, :domain], batch)
    assert wide.status.tolist() == [0] * 6
    assert wide.tokens.tolist() == tight.tokens.tolist()


@pytest.mark.parametrize("device", DEVICES)
def test_results_go_to_the_given_tensors(device):
    logits = torch.randn(3, 40).to(device)
    out = SampledTokens.empty(3, device)
    returned = masked_argmax(logits, out=out)
    assert returned.tokens.data_ptr() == out.tokens.data_ptr()
    assert out.tokens.tolist() == logits.argmax(1).tolist()


@pytest.mark.parametrize("device", DEVICES)
def test_a_batch_of_no_rows_returns_none(device):
    empty = masked_argmax(torch.zeros((0, 5), device=device))
    assert empty.tokens.shape == (0,)
