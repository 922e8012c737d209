"""The native entry checks every argument of a round without a GPU."""

import pytest
import torch

from ninfer.contract import RowMismatch
from ninfer.ops.native import LIBRARY, load_library

ROWS, DRAFTS, DOMAIN = 2, 3, 40


def long(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.int64)


def int32(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.int32)


@pytest.fixture
def arguments() -> dict[str, torch.Tensor | None]:
    if not LIBRARY.exists():
        pytest.skip("the CUDA library is not built (tools/build_cuda)")
    return {
        "logits": torch.zeros(ROWS, DRAFTS + 1, DOMAIN),
        "records": long(ROWS, 8),
        "drafts": long(ROWS, DRAFTS),
        "extents": int32(ROWS),
        "ids": None,
        "q": None,
        "masks": None,
        "counts": None,
        "tokens": long(ROWS, DRAFTS + 1),
        "accepted": int32(ROWS),
        "status": int32(ROWS),
        "workspace": torch.zeros(load_library().workspace_bytes(8), dtype=torch.uint8),
    }


@pytest.mark.parametrize(
    ("name", "value", "place"),
    [
        ("logits", torch.zeros(ROWS, DOMAIN), "rank 2, not 3"),
        ("logits", torch.zeros(ROWS, 65, DOMAIN), "65 positions"),
        ("logits", torch.zeros(ROWS, DRAFTS + 1, DOMAIN).double(), "not bfloat16"),
        ("records", long(ROWS, 7), "records: axis 1 is 7, not 8"),
        ("drafts", long(ROWS, DRAFTS + 1), "drafts: axis 1 is 4, not 3"),
        ("drafts", int32(ROWS, DRAFTS), "drafts: wrong dtype"),
        ("extents", long(ROWS), "extents: wrong dtype"),
        ("ids", long(ROWS, DRAFTS, 16), "ids and q come together"),
        ("masks", int32(ROWS, DRAFTS, 2), "masks: axis 1 is 3, not 4"),
        ("counts", int32(5, DOMAIN + 1), "counts: axis 1 is 41, not 40"),
        ("tokens", long(ROWS, DRAFTS), "tokens: axis 1 is 3, not 4"),
        ("accepted", int32(ROWS + 1), "accepted: axis 0 is 3, not 2"),
        ("workspace", torch.zeros(100).byte(), "workspace: 100 bytes"),
        ("extents", int32(ROWS), "not on a CUDA device"),
    ],
)
def test_with_the_place_of_the_contradiction(arguments, name, value, place):
    arguments[name] = value
    with pytest.raises(RowMismatch, match=place):
        load_library().speculative_acceptance(*arguments.values(), 0)


def test_a_proposal_wider_than_a_drafter_lists(arguments):
    arguments["ids"], arguments["q"] = long(ROWS, DRAFTS, 17), torch.zeros(ROWS, DRAFTS, 17)
    with pytest.raises(RowMismatch, match="17 candidates, not 1 to 16"):
        load_library().speculative_acceptance(*arguments.values(), 0)
