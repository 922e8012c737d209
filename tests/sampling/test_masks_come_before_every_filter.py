"""The mask decides first; what it leaves decides the outcome, or the status says why not."""

import pytest
import torch

from ninfer.contract import (
    GREEDY_PRESET,
    PLACEHOLDER_TOKEN,
    ConstraintDeadEnd,
    NonFiniteLogits,
    SamplingParameters,
)
from ninfer.ops import (
    RowStatus,
    SampledTokens,
    SamplingBatch,
    SamplingRow,
    masked_argmax,
    masked_sampling,
)
from support.devices import DEVICES
from support.packed_masks import packed

NAN, INF = float("nan"), float("inf")


def sample(device, logits, allowed, parameters=None, positions=64) -> SampledTokens:
    """Sample one logit row at many positions."""
    chosen = parameters or SamplingParameters(temperature=1.0, top_p=1.0)
    rows = [SamplingRow(chosen, at, constrained=allowed is not None) for at in range(positions)]
    batch = SamplingBatch.pack(rows, device)
    repeated = torch.as_tensor(logits).float().expand(positions, -1).contiguous().to(device)
    masks = packed([allowed], repeated.shape[1]).expand(positions, -1).contiguous().to(device)
    return masked_sampling(repeated, batch, masks)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("domain", [200, 9001])
def test_legal_tokens_beyond_the_raw_top_twenty_are_drawn(device, domain):
    logits = torch.arange(domain, 0, -1) / 8.0
    allowed = {100, 150, 199}
    tokens = sample(device, logits, allowed, SamplingParameters(temperature=2.0, top_p=1.0)).tokens
    assert set(tokens.tolist()) <= allowed
    assert len(set(tokens.tolist())) > 1


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("stride", [2, 31, 32, 33])
def test_high_forbidden_tokens_everywhere_hide_nothing(device, stride):
    torch.manual_seed(4)
    domain = 9001
    forbidden = torch.arange(0, domain, stride)
    logits = torch.randn(domain)
    logits[forbidden] = 30 + torch.rand(len(forbidden))
    logits[forbidden[7]] = NAN
    allowed = set(range(domain)) - set(forbidden.tolist())
    ranked = sorted(allowed, key=lambda token: -float(logits[token]))
    parameters = SamplingParameters(temperature=2.0, top_p=1.0)
    sampled = sample(device, logits, allowed, parameters, positions=200)
    assert not sampled.status.any()
    assert set(sampled.tokens.tolist()) <= set(ranked[:20])
    assert len(set(sampled.tokens.tolist())) > 10
    assert sample(device, logits, allowed, GREEDY_PRESET, 1).tokens.tolist() == ranked[:1]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("allowed", [{7}, {0}, {31}, {32}, {5000}, {3, 4999}])
def test_a_support_smaller_than_top_k_is_never_padded(device, allowed):
    sampled = sample(device, torch.randn(5001), allowed, SamplingParameters(temperature=2.0))
    assert set(sampled.tokens.tolist()) <= allowed
    assert not sampled.status.any()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("parameters", [GREEDY_PRESET, SamplingParameters()])
@pytest.mark.parametrize(
    ("logits", "allowed", "status"),
    [
        ([1.0, 2.0, 3.0], set(), RowStatus.EMPTY_SET),
        ([NAN, NAN, NAN], set(), RowStatus.EMPTY_SET),
        ([-INF, -INF, 3.0], {0, 1}, RowStatus.NON_FINITE),
        ([NAN, 1.0, 2.0], {0, 1}, RowStatus.NON_FINITE),
        ([-NAN, 1.0, 2.0], {0, 1}, RowStatus.NON_FINITE),
        ([INF, 1.0, 2.0], {0, 1}, RowStatus.NON_FINITE),
        ([NAN, 1.0, 2.0], None, RowStatus.NON_FINITE),
        ([NAN, INF, 2.0], {2}, RowStatus.OK),
        ([-INF, 1.0, 2.0], {0, 1}, RowStatus.OK),
    ],
)
@pytest.mark.parametrize("domain", [3, 6000])
def test_the_status_tells_an_empty_set_from_broken_numbers(
    device, parameters, logits, allowed, status, domain
):
    row = torch.full((domain,), -1000.0 if status != RowStatus.NON_FINITE else -INF)
    row[:3] = torch.tensor(logits)
    sampled = sample(device, row, allowed, parameters, positions=3)
    assert sampled.status.tolist() == [status] * 3
    if status is RowStatus.OK:
        assert sampled.tokens.tolist() == [max(allowed)] * 3
    else:
        assert sampled.tokens.tolist() == [PLACEHOLDER_TOKEN] * 3


@pytest.mark.parametrize("device", DEVICES)
def test_a_weightless_token_is_never_drawn(device):
    logits = [-INF, 0.0, -INF, 0.0]
    tokens = sample(device, logits, {0, 1, 2, 3}, SamplingParameters(temperature=2.0)).tokens
    assert set(tokens.tolist()) == {1, 3}


@pytest.mark.parametrize("device", DEVICES)
def test_biasing_every_legal_token_away_is_reported_as_broken_numbers(device):
    # A caller that bans end-of-sequence by bias while the grammar allows nothing else.
    logits = torch.randn(64)
    logits[11] = -INF
    assert sample(device, logits, {11}).status.tolist() == [RowStatus.NON_FINITE] * 64


@pytest.mark.parametrize("device", DEVICES)
def test_argmax_looks_at_allowed_tokens_only(device):
    logits = torch.tensor([[9.0, 1.0, 5.0, 7.0], [9.0, 1.0, 5.0, 7.0]]).to(device)
    assert masked_argmax(logits, packed([{1, 2}, {3}], 4).to(device)).tokens.tolist() == [2, 3]
    assert masked_argmax(logits).tokens.tolist() == [0, 0]


def test_a_failed_row_raises_what_its_status_means():
    with pytest.raises(ConstraintDeadEnd, match="row 0"):
        sample("cpu", [1.0, 2.0], set(), positions=1).require_ok()
    with pytest.raises(NonFiniteLogits, match="row 0"):
        sample("cpu", [NAN, 2.0], None, positions=1).require_ok()
    sample("cpu", [1.0, 2.0], None, positions=1).require_ok()
