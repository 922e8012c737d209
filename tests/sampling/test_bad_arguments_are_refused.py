"""Every contradiction between arguments is an error before any work."""

import pytest
import torch

from ninfer.contract import (
    DeviceFailure,
    InvalidMask,
    RowMismatch,
    SamplingParameters,
    mask_words,
)
from ninfer.ops import (
    RowStatus,
    SampledTokens,
    SamplingBatch,
    SamplingRow,
    capabilities,
    masked_argmax,
    masked_sampling,
    speculative_acceptance,
)
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


@pytest.mark.parametrize("domain", [40, 5000])
def test_a_row_of_the_count_table_is_asked_for_only_where_it_is_read(domain):
    logits, counts = torch.randn(2, domain), torch.zeros(2, domain, dtype=torch.int32)
    beyond = SamplingBatch.pack([SamplingRow(PENALISED, 0, counts_row=2)] * 2)
    with pytest.raises(RowMismatch, match="beyond the 2 rows"):
        masked_sampling(logits, beyond, None, counts)
    free = batch_of(2, counts_row=7)
    plain = masked_sampling(logits, free).tokens.tolist()
    assert masked_sampling(logits, free, None, counts).tokens.tolist() == plain
    assert masked_sampling(logits, free, None, counts[:0]).tokens.tolist() == plain


@pytest.mark.parametrize(
    "records",
    [
        torch.zeros(2, 8),
        torch.zeros(2, 7, dtype=torch.int64),
        torch.zeros(2, dtype=torch.int64),
        torch.zeros(2, 16, dtype=torch.int64)[:, ::2],
    ],
)
def test_records_that_do_not_fit(records):
    with pytest.raises(RowMismatch, match="batch"):
        masked_sampling(torch.zeros(2, 40), SamplingBatch(records))


@pytest.mark.parametrize("fields", [{"position": -1}, {"position": 1 << 40}, {"counts_row": -1}])
def test_rows_whose_numbers_do_not_fit_their_record(fields):
    with pytest.raises(RowMismatch, match="sampling row"):
        SamplingRow(SamplingParameters(), **{"position": 0, **fields})


@pytest.mark.parametrize(
    "out",
    [
        SampledTokens.empty(3, "cpu"),
        SampledTokens.empty(1, "cpu")._replace(tokens=torch.zeros(1, dtype=torch.int32)),
        SampledTokens.empty(1, "cpu")._replace(status=torch.zeros(1, 1, dtype=torch.int32)),
    ],
)
def test_results_do_not_go_where_they_do_not_fit(out):
    with pytest.raises(RowMismatch, match="out"):
        masked_argmax(torch.zeros(1, 40), out=out)


@pytest.mark.parametrize("extent", [-1, 3])
@pytest.mark.parametrize("domain", [40, 5000])
def test_extents_lie_among_the_drafts(extent, domain):
    drafts, extents = torch.zeros(1, 2, dtype=torch.int64), torch.tensor([extent]).int()
    with pytest.raises(RowMismatch, match="extents"):
        speculative_acceptance(torch.zeros(1, 3, domain), batch_of(1), drafts, extents)


@pytest.mark.parametrize("domain", [40, 5000])
@pytest.mark.parametrize("draft", [-1, 10**9])
@pytest.mark.parametrize("extent", [1, 3])
def test_drafts_outside_the_domain_fail_or_are_not_looked_at(domain, draft, extent):
    logits = torch.full((1, 4, domain), -9.0)
    logits[0, :, 7] = 9.0
    batch = SamplingBatch.pack([SamplingRow(PENALISED, 5)])
    counts = torch.zeros(1, domain, dtype=torch.int32)
    drafts, extents = torch.tensor([[7, draft, 7]]), torch.tensor([extent], dtype=torch.int32)
    accepted = speculative_acceptance(logits, batch, drafts, extents, counts=counts)
    assert accepted.accepted.tolist() == [1]
    assert accepted.tokens.tolist() == [[7, 7, 0, 0]]
    assert accepted.status.tolist() == [0]


@pytest.mark.parametrize("domain", [40, 5000])
def test_a_round_may_have_no_rows(domain):
    rows, none = torch.zeros(0, domain), SamplingBatch.empty(0)
    for sampled in (masked_argmax(rows), masked_sampling(rows, none)):
        assert sampled.tokens.shape == (0,)
    drafts, extents = torch.zeros(0, 2, dtype=torch.int64), torch.zeros(0, dtype=torch.int32)
    accepted = speculative_acceptance(torch.zeros(0, 3, domain), none, drafts, extents)
    assert accepted.tokens.shape == (0, 3)


@pytest.mark.parametrize("domain", [40, 5000])
def test_bits_behind_the_domain_allow_nothing(domain):
    masks = torch.zeros(1, mask_words(domain), dtype=torch.int32)
    masks[0, -1] = -(1 << 31)
    sampled = masked_argmax(torch.zeros(1, domain), masks)
    assert sampled.status.tolist() == [RowStatus.EMPTY_SET]


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
