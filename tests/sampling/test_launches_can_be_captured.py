"""On a GPU an op with room to write allocates nothing and replays in a graph."""

import pytest
import torch

from ninfer.contract import SamplingParameters
from ninfer.ops import (
    AcceptedTokens,
    SampledTokens,
    SamplingBatch,
    SamplingRow,
    capabilities,
    masked_sampling,
    reserve_workspace,
    speculative_acceptance,
)
from support.packed_masks import packed

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not capabilities().cuda_library, reason=capabilities().reason),
]
DOMAIN = 5003


def rows_at(position: int, rows: int) -> SamplingBatch:
    parameters = SamplingParameters(temperature=1.0, seed=position)
    return SamplingBatch.pack(
        [SamplingRow(parameters, position + b, constrained=True) for b in range(rows)], "cuda"
    )


def allocations() -> int:
    return torch.cuda.memory_stats()["allocation.all.allocated"]


def test_sampling_replays_with_new_inputs_at_the_same_addresses():
    rows = 4
    logits = torch.randn(rows, DOMAIN, device="cuda")
    batch, masks = rows_at(0, rows), packed([range(0, DOMAIN, 2)] * rows, DOMAIN).cuda()
    out, workspace = SampledTokens.empty(rows, "cuda"), reserve_workspace(rows, "cuda")

    def launch() -> SampledTokens:
        return masked_sampling(logits, batch, masks, out=out, workspace=workspace)

    launch()
    before = allocations()
    launch()
    assert allocations() == before
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch()
    for position in range(5):
        logits.normal_()
        batch.records.copy_(rows_at(position, rows).records)
        out.tokens.fill_(-1)
        graph.replay()
        replayed = out.tokens.tolist()
        assert replayed == masked_sampling(logits, batch, masks).tokens.tolist()
        assert all(token % 2 == 0 for token in replayed)


def test_acceptance_replays_with_new_extents():
    rows, drafts = 3, 4
    logits = torch.randn(rows, drafts + 1, DOMAIN, device="cuda")
    batch, proposed = rows_at(0, rows), logits[:, :-1].argmax(2)
    masks = packed([range(DOMAIN)] * rows * (drafts + 1), DOMAIN).view(rows, drafts + 1, -1).cuda()
    extents = torch.zeros(rows, dtype=torch.int32, device="cuda")
    out = AcceptedTokens.empty(rows, drafts + 1, "cuda")
    workspace = reserve_workspace(rows * (drafts + 1), "cuda")

    def launch() -> AcceptedTokens:
        return speculative_acceptance(
            logits, batch, proposed, extents, masks=masks, out=out, workspace=workspace
        )

    launch()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch()
    for extent in (4, 0, 2, 4):
        extents.fill_(extent)
        graph.replay()
        eager = speculative_acceptance(logits, batch, proposed, extents, masks=masks)
        assert out.tokens.tolist() == eager.tokens.tolist()
        assert int(out.accepted.max()) <= extent
