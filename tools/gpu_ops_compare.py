"""The CUDA library of ninfer.ops against the torch path, row by row, on random inputs.

Both run on the GPU; a row counts as different when its token or its status differs.
"""

from __future__ import annotations

import torch

from ninfer.contract import RngPurpose, SamplingParameters
from ninfer.ops import (
    SampledTokens,
    SamplingBatch,
    SamplingRow,
    SparseProposal,
    reserve_workspace,
    speculative_acceptance,
)
from ninfer.ops.native import load_library
from ninfer.ops.reference.columns import Columns
from ninfer.ops.reference.masked_sampling import sample_columns
from ninfer.ops.reference.speculative_acceptance import accept_rows


def random_words(rows: int, words: int) -> torch.Tensor:
    """Return int32[rows, words] whose bits are set with probability one half."""
    return torch.randint(-(2**31), 2**31, (rows, words), device="cuda").to(torch.int32)


def compare(rows: int) -> int:
    """Count rows whose token differs from the torch path's; 0 means none."""
    wrong = 0
    for domain, count, size in ((248_320, rows // 5, 128), (32_003, rows - rows // 5, 1024)):
        found = sum(differing_rows(size, domain, step) for step in range(-(-count // size)))
        print(f"compare: V = {domain}, {-(-count // size) * size} rows, {found} differ")
        wrong += found
    steps = max(1, rows // 5 // 320)
    found = sum(differing_rounds(64, 5, 32_003, step) for step in range(steps))
    print(f"compare: acceptance, {steps * 320} columns, {found} rows differ")
    return int(wrong + found > 0)


def random_row(rng: torch.Generator, row: int, constrained: bool) -> SamplingRow:
    """Return parameters of every kind: greedy, filters, penalties and rewards."""

    def pick(*values: float) -> float:
        return values[int(torch.randint(len(values), (1,), generator=rng))]

    parameters = SamplingParameters(
        temperature=pick(0.0, 0.3, 0.7, 1.0, 2.0),
        top_p=pick(0.5, 0.8, 0.95, 1.0),
        top_k=int(pick(0, 1, 5, 20)),
        min_p=pick(0.0, 0.0, 0.1),
        presence_penalty=pick(0.0, 0.0, 1.5, -0.7),
        frequency_penalty=pick(0.0, 0.0, 0.3),
        seed=int(torch.randint(2**62, (1,), generator=rng)) * 3,
    )
    position = int(torch.randint(2**20, (1,), generator=rng))
    return SamplingRow(parameters, position, RngPurpose.DECODE, constrained, row)


def random_inputs(columns: int, domain: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return logits full of ties, zeros of both signs and infinities, and masks of all kinds."""
    dtype = (torch.bfloat16, torch.float32, torch.float16)[step % 3]
    padded = torch.randn(columns, domain + 8 * (step % 2), device="cuda") * 4
    logits = padded[:, :domain]
    kind = torch.arange(columns, device="cuda")[:, None] % 8
    logits.copy_(torch.where(kind == 1, (logits * 2).round() / 8, logits))
    logits.copy_(torch.where(kind == 2, logits.round() * 0.0, logits))
    logits.masked_fill_((kind == 3) & (logits < 2), -torch.inf)
    logits.copy_(torch.where((kind == 4) & (logits > 14), torch.nan, logits))
    words = -(-domain // 32)
    masks = random_words(columns, words)
    for rounds in range(11):
        masks = torch.where(kind > rounds % 5, masks & random_words(columns, words), masks)
    masks = torch.where(kind == 6, random_words(columns, words), masks)
    masks = torch.where(kind == 7, torch.zeros_like(masks), masks)
    span = torch.arange(words, device="cuda")
    masks = torch.where((kind == 7) & (span > 300) & (span < 340), -1, masks)
    masks[::97] = 0
    masks[:, -1] &= (1 << (domain % 32 or 31)) - 1
    return padded.to(dtype)[:, :domain], masks


def differing_rows(rows: int, domain: int, step: int) -> int:
    """Sample one random batch both ways."""
    logits, masks = random_inputs(rows, domain, step)
    rng = torch.Generator().manual_seed(step)
    batch = SamplingBatch.pack([random_row(rng, b, b % 5 > 0) for b in range(rows)], "cuda")
    counts = torch.randint(-6, 3, (rows, domain), device="cuda").clamp(min=0).to(torch.int32)
    expected = sample_columns(Columns(logits, batch, masks, counts))
    out = SampledTokens.empty(rows, "cuda")
    workspace = reserve_workspace(rows, "cuda")
    splits = (0, 1, 3, 64)[step % 4]
    load_library().masked_sampling(logits, batch.records, masks, counts, *out, workspace, splits)
    differ = (out.tokens != expected.tokens) | (out.status != expected.status)
    for row in differ.nonzero().flatten().tolist()[:3]:
        print("  differs:", step, row, logits.dtype, out.tokens[row], expected.tokens[row],
              out.status[row], expected.status[row])  # fmt: skip
    return int(differ.sum())


def differing_rounds(rows: int, positions: int, domain: int, step: int) -> int:
    """Verify one random round both ways; odd steps have a sparse proposal."""
    logits, masks = random_inputs(rows * positions, domain, step)
    logits = logits.unflatten(0, (rows, positions))
    masks = masks.view(rows, positions, -1)
    rng = torch.Generator().manual_seed(step)
    batch = SamplingBatch.pack([random_row(rng, b, b % 5 > 0) for b in range(rows)], "cuda")
    counts = torch.randint(-6, 3, (rows, domain), device="cuda").clamp(min=0).to(torch.int32)
    best = logits.float().nan_to_num(-1e9).topk(16, dim=2).indices[:, :-1].contiguous()
    drafts = best[:, :, step % 3].contiguous()
    extents = torch.randint(0, positions, (rows,), device="cuda").to(torch.int32)
    q = torch.rand(best.shape, device="cuda") ** 3
    proposal = SparseProposal(best, q / q.sum(-1, keepdim=True)) if step % 2 else None
    inputs = (logits, batch, drafts, extents)
    expected = accept_rows(*inputs, proposal, masks, counts)
    found = speculative_acceptance(*inputs, proposal=proposal, masks=masks, counts=counts)
    differ = (found.tokens != expected.tokens).any(1) | (found.status != expected.status)
    differ |= found.accepted != expected.accepted
    for row in differ.nonzero().flatten().tolist()[:3]:
        print("  differs:", step, row, found.tokens[row], expected.tokens[row],
              found.status[row], expected.status[row])  # fmt: skip
    return int(differ.sum())


def exercise() -> int:
    """Launch every kind of work on small shapes; the result is compared too."""
    wrong = 0
    for domain in (1, 37, 2049, 20_003):
        wrong += sum(differing_rows(8, domain, step) for step in range(4))
        if domain > 16:
            wrong += sum(differing_rounds(3, 4, domain, step) for step in range(3))
    print(f"exercise: {wrong} rows differ")
    return int(wrong > 0)
