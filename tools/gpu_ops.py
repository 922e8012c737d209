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
from gpu_ops_compare import compare, exercise, random_words

from ninfer.contract import GREEDY_PRESET, RngPurpose, SamplingParameters
from ninfer.ops import (
    AcceptedTokens,
    SampledTokens,
    SamplingBatch,
    SamplingRow,
    SparseProposal,
    capabilities,
    reserve_workspace,
)
from ninfer.ops.native import load_library

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
        """Return the records of all rows."""
        rows = [
            SamplingRow(parameters, 77 + b, RngPurpose.DECODE, constrained, b)
            for b in range(self.rows)
        ]
        return SamplingBatch.pack(rows, "cuda")

    def amax(self, index: int) -> None:
        """Launch the plain maximum of the same logits."""
        torch.amax(self.logits[index], dim=1, out=self.best)

    def sampling(
        self, kind: str | None, parameters: SamplingParameters = SAMPLED, splits: int = 0
    ) -> Launch:
        """Return a launch of masked sampling; ``kind`` None leaves the rows free."""
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
        """Launch copy, mask kernel, top-k, softmax, filter and draw, one after another."""
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
    """Measure one shape of sampling in every way."""
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
    """Measure how many blocks should share a row."""
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
    """Measure one shape of acceptance with both kinds of proposal."""
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


if __name__ == "__main__":
    sys.exit(main())
