#!/usr/bin/env python3
"""Measure and compare the CUDA library of ninfer.ops on this machine's GPU.

    tools/gpu_ops.py bench [--sweep]     one table: microseconds a launch, next to amax and others
    tools/gpu_ops.py compare [--rows N]  the same tokens as the torch path on N random rows
    tools/gpu_ops.py exercise            small shapes of every kind, for compute-sanitizer

Build the library first (tools/build_cuda). Timings replay one CUDA graph of many launches over
rotating inputs that together exceed the L2 cache, and report the median replay.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable

import torch
import triton
import triton.language as tl

from ninfer.contract import GREEDY_PRESET, RngPurpose, SamplingParameters
from ninfer.ops import (
    AcceptedTokens,
    SampledTokens,
    SamplingBatch,
    SamplingRow,
    SparseProposal,
    capabilities,
    reserve_workspace,
    speculative_acceptance,
)
from ninfer.ops.native import load_library
from ninfer.ops.reference.columns import Columns
from ninfer.ops.reference.masked_sampling import sample_columns
from ninfer.ops.reference.speculative_acceptance import accept_rows

DOMAIN = 248_320
WORDS = DOMAIN // 32
DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}
ROWS = (1, 8, 16, 64, 128)
SAMPLED = SamplingParameters(temperature=0.7, top_p=0.8, seed=5)
Launch = Callable[[int], object]


def main() -> int:
    """Run one command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["bench", "compare", "exercise"])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--sweep", action="store_true", help="also every number of splits")
    chosen = parser.parse_args()
    if not capabilities().cuda_library:
        print(f"gpu_ops: {capabilities().reason}")
        return 1
    print(torch.cuda.get_device_name(), torch.__version__, capabilities().reason)
    torch.manual_seed(1)
    if chosen.command == "bench":
        bench(chosen.sweep)
        return 0
    if chosen.command == "exercise":
        return exercise()
    return compare(chosen.rows)


def microseconds(launch: Launch, sets: int, replays: int = 15) -> float:
    """Return the median time of one launch in a graph that cycles through the input sets."""
    launches = max(sets, 48)
    for index in range(min(sets, 3)):
        launch(index)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for index in range(launches):
            launch(index % sets)
    times = []
    for _ in range(replays + 3):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1000 / launches)
    return statistics.median(times[3:])


def random_masks(rows: int, words: int, kind: str) -> torch.Tensor:
    """Return int32[rows, words]; half or about 1 / 2048 of the bits are set."""
    rounds = {"half": 1, "narrow": 11}[kind]
    masks = torch.full((rows, words), -1, dtype=torch.int32, device="cuda")
    for _ in range(rounds):
        masks &= random_words(rows, words)
    masks[:, words // 2] |= 1
    return masks


def random_words(rows: int, words: int) -> torch.Tensor:
    return torch.randint(-(2**31), 2**31, (rows, words), device="cuda").to(torch.int32)


def bench(sweep: bool) -> None:
    """Print the tables."""
    if sweep:
        print_sweep()
    print(f"\nmasked_sampling, V = {DOMAIN}, T 0.7, top-p 0.8, microseconds")
    print("dtype rows |   amax |  half   ratio | narrow |   free | greedy | penalty | topk route")
    for name, dtype in DTYPES.items():
        for rows in ROWS:
            print_row(name, dtype, rows)
    print("\nspeculative_acceptance, V = 248320, every column verified, microseconds")
    print("dtype  B  K |   amax | one-hot  ratio | sparse  ratio")
    for name, dtype in DTYPES.items():
        for rows, drafts in ((1, 3), (1, 15), (8, 3), (8, 15)):
            print_acceptance(name, dtype, rows, drafts)


class Inputs:
    """Rotating logits and masks of one shape, and one batch."""

    def __init__(self, dtype: torch.dtype, rows: int) -> None:
        row_bytes = rows * DOMAIN * dtype.itemsize
        self.sets = max(3, min(320, -(-(160 << 20) // row_bytes)))
        self.rows = rows
        self.logits = [
            (torch.randn(rows, DOMAIN, device="cuda") * 4).to(dtype) for _ in range(self.sets)
        ]
        self.masks = {kind: self._masks(kind) for kind in ("half", "narrow")}
        self.best = torch.empty(rows, dtype=dtype, device="cuda")
        self.out = SampledTokens.empty(rows, "cuda")
        self.workspace = reserve_workspace(rows, "cuda")
        self.counts = torch.zeros((rows, DOMAIN), dtype=torch.int32, device="cuda")
        self.library = load_library()

    def _masks(self, kind: str) -> list[torch.Tensor]:
        return [random_masks(self.rows, WORDS, kind) for _ in range(self.sets)]

    def batch(self, parameters: SamplingParameters, constrained: bool) -> SamplingBatch:
        rows = [
            SamplingRow(parameters, 77 + b, RngPurpose.DECODE, constrained, b)
            for b in range(self.rows)
        ]
        return SamplingBatch.pack(rows, "cuda")

    def amax(self, index: int) -> None:
        torch.amax(self.logits[index], dim=1, out=self.best)

    def sampling(
        self, kind: str | None, parameters: SamplingParameters = SAMPLED, splits: int = 0
    ) -> Launch:
        batch = self.batch(parameters, kind is not None)
        masks = self.masks[kind] if kind else [None] * self.sets
        counts = self.counts if parameters.presence_penalty else None

        def launch(index: int) -> None:
            self.library.masked_sampling(
                self.logits[index], batch.records, masks[index], counts,
                *self.out, self.workspace, splits,
            )  # fmt: skip

        return launch

    def topk_route(self, index: int) -> torch.Tensor:
        logits = self.logits[index].clone()
        masks = self.masks["half"][index]
        grid = (self.rows, triton.cdiv(DOMAIN, 4096))
        _mask_kernel[grid](logits, masks, DOMAIN, WORDS, BLOCK=4096)
        values, ids = logits.float().topk(20, dim=1)
        weights = (values / 0.7).softmax(1)
        inside = weights.cumsum(1) - weights < 0.8
        noise = torch.empty_like(weights).exponential_()
        place = (weights * inside / noise).argmax(1, keepdim=True)
        return ids.gather(1, place)


@triton.jit
def _mask_kernel(logits, masks, domain, words, BLOCK: tl.constexpr):  # noqa: ANN001, ANN202, N803
    row = tl.program_id(0)
    token = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = token < domain
    word = tl.load(masks + row * words + token // 32, mask=inside, other=0)
    banned = ((word >> (token % 32)) & 1) == 0
    tl.store(logits + row * domain + token, -float("inf"), mask=inside & banned)


def print_row(name: str, dtype: torch.dtype, rows: int) -> None:
    inputs = Inputs(dtype, rows)
    amax = microseconds(inputs.amax, inputs.sets)
    half = microseconds(inputs.sampling("half"), inputs.sets)
    narrow = microseconds(inputs.sampling("narrow"), inputs.sets)
    free = microseconds(inputs.sampling(None), inputs.sets)
    greedy = microseconds(inputs.sampling("half", GREEDY_PRESET), inputs.sets)
    presence = SamplingParameters(temperature=0.7, top_p=0.8, presence_penalty=1.5)
    penalty = microseconds(inputs.sampling("half", presence), inputs.sets)
    route = microseconds(inputs.topk_route, inputs.sets)
    print(
        f"{name:5} {rows:4} | {amax:6.2f} | {half:6.2f} {half / amax:5.2f}x | {narrow:6.2f} "
        f"| {free:6.2f} | {greedy:6.2f} | {penalty:7.2f} | {route:8.2f}"
    )


def print_sweep() -> None:
    print("\nmasked_sampling bf16 half by splits, microseconds")
    choices = (8, 12, 16, 24, 32, 48, 64)
    print("rows |" + "".join(f"{splits:7}" for splits in choices))
    for rows in ROWS:
        inputs = Inputs(torch.bfloat16, rows)
        times = [
            microseconds(inputs.sampling("half", splits=splits), inputs.sets) for splits in choices
        ]
        print(f"{rows:4} |" + "".join(f"{time:7.2f}" for time in times))


def print_acceptance(name: str, dtype: torch.dtype, rows: int, draft_limit: int) -> None:
    positions = draft_limit + 1
    columns = rows * positions
    inputs = Inputs(dtype, columns)
    records = [SamplingRow(SAMPLED, 77 + b, constrained=True) for b in range(rows)]
    batch = SamplingBatch.pack(records, "cuda")
    drafts = torch.randint(0, DOMAIN, (rows, draft_limit), device="cuda")
    extents = torch.full((rows,), draft_limit, dtype=torch.int32, device="cuda")
    ids = torch.randint(0, DOMAIN, (rows, draft_limit, 16), device="cuda")
    sparse = SparseProposal(ids, torch.full(ids.shape, 1 / 16, device="cuda"))
    out = AcceptedTokens.empty(rows, positions, "cuda")

    def launch(proposal: SparseProposal | None) -> Launch:
        def one(index: int) -> None:
            inputs.library.speculative_acceptance(
                inputs.logits[index].view(rows, positions, DOMAIN), batch.records, drafts, extents,
                *(proposal or (None, None)), inputs.masks["half"][index].view(rows, positions, -1),
                None, *out, inputs.workspace, 0,
            )  # fmt: skip

        return one

    amax = microseconds(inputs.amax, inputs.sets)
    one_hot = microseconds(launch(None), inputs.sets)
    listed = microseconds(launch(sparse), inputs.sets)
    print(
        f"{name:5} {rows:2} {draft_limit:2} | {amax:6.2f} | {one_hot:7.2f} {one_hot / amax:5.2f}x "
        f"| {listed:6.2f} {listed / amax:5.2f}x"
    )


def compare(rows: int) -> int:
    """Count rows whose token differs from the torch path's; 0 means none."""
    wrong = 0
    for domain, count, size in ((DOMAIN, rows // 5, 128), (32_003, rows - rows // 5, 1024)):
        found = sum(differing_rows(size, domain, step) for step in range(-(-count // size)))
        print(f"compare: V = {domain}, {-(-count // size) * size} rows, {found} differ")
        wrong += found
    steps = max(1, rows // 5 // 320)
    found = sum(differing_rounds(64, 5, 32_003, step) for step in range(steps))
    print(f"compare: acceptance, {steps * 320} columns, {found} rows differ")
    return int(wrong + found > 0)


def random_row(rng: torch.Generator, row: int, constrained: bool) -> SamplingRow:
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


if __name__ == "__main__":
    sys.exit(main())
