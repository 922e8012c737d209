"""Equal adjusted logits: the lower id is ahead, zeros of both signs tie."""

import pytest
import torch

from ninfer.contract import SamplingParameters
from ninfer.ops import SamplingBatch, SamplingRow, masked_argmax, masked_sampling
from support.devices import DEVICES
from support.packed_masks import packed

WIDE = SamplingParameters(temperature=1.0, top_p=1.0)


def drawn(device, logits, allowed=None) -> set[int]:
    rows = [SamplingRow(WIDE, at, constrained=allowed is not None) for at in range(400)]
    repeated = logits.expand(400, -1).contiguous().to(device)
    masks = None if allowed is None else packed([allowed], logits.shape[0])
    if masks is not None:
        masks = masks.expand(400, -1).contiguous().to(device)
    batch = SamplingBatch.pack(rows, device)
    return set(masked_sampling(repeated, batch, masks).tokens.tolist())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("domain", [50, 4500])
def test_twenty_of_many_equal_logits_are_the_first_twenty(device, domain):
    assert drawn(device, torch.full((domain,), 0.5)) == set(range(20))


@pytest.mark.parametrize("device", DEVICES)
def test_the_mask_moves_the_first_twenty(device):
    allowed = set(range(1001, 4501, 7))
    assert drawn(device, torch.zeros(4501), allowed) == set(sorted(allowed)[:20])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("domain", [30, 4500])
def test_zeros_of_both_signs_tie(device, domain):
    logits = torch.full((domain,), -5.0)
    logits[[3, 9]] = torch.tensor([-0.0, 0.0])
    assert masked_argmax(logits[None].to(device)).tokens.tolist() == [3]
    logits[[3, 9]] = torch.tensor([0.0, -0.0])
    assert masked_argmax(logits[None].to(device)).tokens.tolist() == [3]
    zeros = torch.where(torch.arange(domain) % 2 == 0, -0.0, 0.0)
    assert drawn(device, zeros) == set(range(20))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_the_twentieth_place_is_settled_by_id(device, dtype):
    logits = torch.full((5000,), 1.0)
    logits[torch.arange(4000, 4019)] = 2.0
    assert drawn(device, logits.to(dtype)) == {0, *range(4000, 4019)}


@pytest.mark.parametrize("device", DEVICES)
def test_a_vocabulary_of_equal_logits_is_exact_at_full_size(device):
    logits = torch.zeros(2, 248_320, dtype=torch.bfloat16)
    logits[1, 200_000:] = 1.0
    logits = logits.to(device)
    assert masked_argmax(logits).tokens.tolist() == [0, 200_000]
    rows = [SamplingRow(WIDE, at) for at in range(2)]
    tokens = masked_sampling(logits, SamplingBatch.pack(rows, device)).tokens.tolist()
    assert tokens[0] in range(20)
    assert tokens[1] in range(200_000, 200_020)
