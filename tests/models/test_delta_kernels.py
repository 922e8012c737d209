"""The kernels of layers with recurrent states, and of small steps, compute what torch does."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from ninfer.runtime.models.gated_delta import DeltaRecords, fold, gated_delta

SIZES = [(2, 3, 5, 16, 24), (1, 2, 16, 32, 40), (2, 1, 1, 16, 16), (1, 1, 8, 128, 64)]
"""Rows, heads, columns, width of a key, width of a value."""
TOLERANCE = 1e-5


def differences(device: str) -> Iterator[float]:
    """Yield how far each result of each kernel is from plain torch on the CPU."""
    for size in SIZES:
        yield from rule_differences(device, *size)
    yield from mixer_differences(device)
    yield from fold_differences(device)
    yield from pointwise_differences(device)


def rule_differences(
    device: str, rows: int, heads: int, columns: int, key_dim: int, value_dim: int
) -> Iterator[float]:
    from ninfer.runtime.models.gated_delta_kernel import gated_delta_rows

    draw = torch.Generator().manual_seed(columns)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=draw)

    keys = functional.normalize(normal(rows, heads, columns, key_dim), dim=-1)
    queries = functional.normalize(normal(rows, heads, columns, key_dim), dim=-1)
    values = normal(rows, heads, columns, value_dim)
    decay = -normal(rows, heads, columns).abs()
    beta = normal(rows, heads, columns).sigmoid()
    given = (queries, keys, values, decay, beta)
    states, pool_rows = normal(rows + 2, heads, key_dim, value_dim), torch.arange(rows) + 1
    read, records = gated_delta(*given, states[pool_rows])
    moved = (part.to(device) for part in (*given, states))
    told, found = gated_delta_rows(*moved, in_a_table(pool_rows, device))
    for one, other in zip((read, *records[1:]), (told, *found[1:]), strict=True):
        yield float((one - other.cpu()).abs().max())


def in_a_table(numbers: Tensor, device: str) -> Tensor:
    """Return numbers as a round tells them: one column of a wide table."""
    return torch.stack((numbers, numbers + 1), dim=1).to(device)[:, 0]


def mixer_differences(device: str) -> Iterator[float]:
    from ninfer.runtime.models.config import DeltaConfig
    from ninfer.runtime.models.delta_mixer_kernel import convolve, gated_norm, joined

    draw = torch.Generator().manual_seed(9)
    rows, columns, config = 3, 5, DeltaConfig((0,), 2, 4, 16, 24, 4)
    inputs = torch.randn(rows, 3 + columns, config.conv_rows, generator=draw)
    conv = torch.randn(4, config.conv_rows, generator=draw)
    wide = torch.randn(rows, columns, 8, generator=draw) * 10
    rate, bias = torch.rand(4, generator=draw), torch.randn(4, generator=draw)
    a, b = wide[..., :4], wide[..., 4:]
    given = (inputs, conv, a, b, rate, bias)
    found = convolve(config, *(part.to(device) for part in given), 1e-6)
    filtered = sum(inputs[:, tap : tap + columns] * conv[tap] for tap in range(4))
    q, k, v = functional.silu(filtered).split([32, 32, 96], dim=-1)
    expected = [
        *(unit(part.view(rows, columns, 2, 16)).repeat_interleave(2, 2) for part in (q, k)),
        v.view(rows, columns, 4, 24),
        -rate * functional.softplus(a + bias),
        b.sigmoid(),
    ]
    expected[0] = expected[0] / 4
    for one, other in zip(expected, found, strict=True):
        yield float((one.transpose(1, 2) - other.cpu()).abs().max())
    tails, pool_rows = torch.randn(5, 3, 8, generator=draw), torch.tensor([4, 0, 2])
    new = torch.randn(rows * columns, 11, generator=draw)[:, 2:10]
    whole = joined(tails.to(device), in_a_table(pool_rows, device), new.to(device), columns)
    cat = torch.cat((tails[pool_rows], new.reshape(rows, columns, 8)), dim=1)
    yield float((whole.cpu() - cat).abs().max())
    read = torch.randn(rows, 4, columns, 24, generator=draw)
    scale, z = torch.randn(24, generator=draw), torch.randn(15, 200, generator=draw)[:, 7:103]
    out = gated_norm(*(part.to(device) for part in (read, scale, z)), 1e-6, torch.float32)
    normed = functional.rms_norm(read.transpose(1, 2).flatten(0, 1), (24,), scale, 1e-6)
    yield float((out.cpu() - normed.flatten(1) * functional.silu(z)).abs().max())


def fold_differences(device: str) -> Iterator[float]:
    from ninfer.runtime.models.fold_kernel import fold_in_place

    draw = torch.Generator().manual_seed(4)
    layers, heads, columns = 2, 3, 5
    counts, pool_rows = torch.tensor([3, 0, 5]), torch.tensor([4, 0, 2])
    states = torch.randn(layers, 5, heads, 16, 24, generator=draw)
    records = DeltaRecords(
        torch.randn(2 * 3, heads, columns, 16, generator=draw),
        torch.randn(2 * 3, heads, columns, 24, generator=draw),
        -torch.rand(2 * 3, heads, columns, generator=draw).cumsum(-1),
    )
    expected = states.clone()
    folded = fold(states[:, pool_rows].flatten(0, 1), records, counts.repeat(layers))
    expected[:, pool_rows] = folded.view(layers, 3, heads, 16, 24)
    found = states.to(device, copy=True)
    rows = in_a_table(pool_rows, device)
    moved = DeltaRecords(*(part.to(device) for part in records))
    fold_in_place(found, rows, moved, counts.to(device))
    # A row that keeps nothing, and one that is not there, stay bit for bit.
    assert torch.equal(found[:, [0, 1]].cpu(), states[:, [0, 1]])
    yield float((found.cpu() - expected).abs().max())


def pointwise_differences(device: str) -> Iterator[float]:
    from ninfer.runtime.models.pointwise_kernels import gated, rms_norm

    draw = torch.Generator().manual_seed(5)
    x, weight = torch.randn(7, 60, generator=draw), torch.randn(40, generator=draw)
    part = x[:, 9:49]
    found = rms_norm(part.to(device), weight.to(device), 1e-6)
    yield float((found.cpu() - functional.rms_norm(part, (40,), weight, 1e-6)).abs().max())
    gate, up = x[:, :30], x[:, 30:]
    yield float((gated(x.to(device)).cpu() - functional.silu(gate) * up).abs().max())


def unit(heads: Tensor) -> Tensor:
    return heads * torch.rsqrt(heads.square().sum(-1, keepdim=True) + 1e-6)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_the_kernels_compute_what_torch_does() -> None:
    assert max(differences("cuda")) < TOLERANCE


def test_the_interpreted_kernels_compute_what_torch_does() -> None:
    pytest.importorskip("triton")
    from support.interpreted import interpreted

    found = interpreted(__file__)
    assert len(found) == 3 * len(SIZES) + 10
    assert max(found) < TOLERANCE


if __name__ == "__main__":
    for difference in differences("cpu"):
        sys.stdout.write(f"{difference}\n")
