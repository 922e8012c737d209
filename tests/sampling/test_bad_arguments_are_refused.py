"""Every contradiction between arguments is an error before any work."""

import pytest
import torch

from ninfer.contract import DeviceFailure, InvalidMask, RowMismatch, SamplingParameters
from ninfer.ops import SamplingBatch, SamplingRow, capabilities, masked_argmax, masked_sampling
from ninfer.ops.native import LIBRARY, load_library

PENALISED = SamplingParameters(presence_penalty=1.0)


def batch_of(rows: int, **fields) -> SamplingBatch:
    return SamplingBatch.pack([SamplingRow(SamplingParameters(), 0, **fields)] * rows)


@pytest.mark.parametrize(
    ("logits", "place"),
    [
        (torch.zeros(40), "rank 1"),
        (torch.zeros(2, 2, 40), "rank 3"),
        (torch.zeros(2, 40, dtype=torch.float64), "float64"),
        (torch.zeros(40, 2).T, "not contiguous"),
        (torch.zeros(2, 0), "empty"),
        (torch.zeros(3, 40), "2 records for 3 rows"),
    ],
)
def test_logits_that_do_not_fit(logits, place):
    with pytest.raises(RowMismatch, match=place):
        masked_sampling(logits, batch_of(2))


@pytest.mark.parametrize(
    ("masks", "place"),
    [
        (torch.zeros(2, 2, dtype=torch.int64), "int64"),
        (torch.zeros(2, 3, dtype=torch.int32), r"\(2, 3\), not \(2, 2\)"),
        (torch.zeros(1, 2, dtype=torch.int32), r"\(1, 2\), not \(2, 2\)"),
        (torch.zeros(2, 2, dtype=torch.int32).T, "not contiguous"),
    ],
)
def test_masks_that_do_not_fit(masks, place):
    with pytest.raises(InvalidMask, match=place):
        masked_argmax(torch.zeros(2, 40), masks)


@pytest.mark.parametrize("counts", [torch.zeros(2, 39).int(), torch.zeros(2, 40), None])
def test_counts_that_do_not_fit(counts):
    batch = SamplingBatch.pack([SamplingRow(PENALISED, 0)] * 2)
    with pytest.raises(RowMismatch, match="count"):
        masked_sampling(torch.zeros(2, 40), batch, None, counts)


def test_a_constrained_row_needs_masks():
    with pytest.raises(RowMismatch, match="constrained"):
        masked_sampling(torch.zeros(2, 40), batch_of(2, constrained=True))


def test_more_rows_than_the_batch_holds_are_refused():
    with pytest.raises(RowMismatch, match="3 rows, room for 2"):
        SamplingBatch.empty(2).write([SamplingRow(SamplingParameters(), 0)] * 3)


def test_capabilities_name_the_path_and_the_reason():
    found = capabilities()
    assert found.cuda_library == (LIBRARY.exists() and torch.cuda.is_available())
    assert found.reason


class TestTheLibraryRefusesBeforeAnyLaunch:
    """The native entries check rank, dtype, sizes and device without a GPU."""

    @pytest.fixture
    def call(self):
        if not LIBRARY.exists():
            pytest.skip("the CUDA library is not built (tools/build_cuda)")
        library = load_library()
        out = (torch.zeros(2, dtype=torch.int64), torch.zeros(2, dtype=torch.int32))
        workspace = torch.zeros(library.workspace_bytes(2), dtype=torch.uint8)

        def argmax(logits, masks=None, workspace=workspace):
            library.masked_argmax(logits, masks, *out, workspace, 0)

        return argmax

    @pytest.mark.parametrize(
        ("arguments", "place"),
        [
            ((torch.zeros(40),), "rank 1, not 2"),
            ((torch.zeros(2, 40, dtype=torch.float64),), "not bfloat16"),
            ((torch.zeros(40, 2).T,), "stride 2"),
            ((torch.zeros(2, 40), torch.zeros(2, 3, dtype=torch.int32)), "axis 1 is 3, not 2"),
            ((torch.zeros(2, 40), torch.zeros(2, 2)), "masks: wrong dtype"),
            ((torch.zeros(3, 40),), "tokens: axis 0 is 2, not 3"),
            ((torch.zeros(2, 40), None, torch.zeros(9).byte()), "workspace: 9 bytes"),
            ((torch.zeros(2, 40),), "not on a CUDA device"),
        ],
    )
    def test_with_the_contracts_error(self, call, arguments, place):
        with pytest.raises(RowMismatch, match=place):
            call(*arguments)


def test_a_library_that_cannot_be_loaded_is_named(tmp_path):
    broken = tmp_path / "libninfer_ops.so"
    with pytest.raises(DeviceFailure, match=r"libninfer_ops\.so"):
        load_library(broken)
    broken.write_bytes(b"not a library")
    with pytest.raises(DeviceFailure, match=r"libninfer_ops\.so"):
        load_library(broken)
