"""Columns after the first rejection or the extent may hold anything."""

import pytest
import torch

from ninfer.contract import GREEDY_PRESET, RowMismatch, SamplingParameters
from ninfer.ops import RowStatus, SamplingBatch, SamplingRow, SparseProposal, speculative_acceptance
from support.acceptance_cases import Case, accept
from support.devices import DEVICES

NAN = float("nan")
GOOD, BROKEN = [0.0, 3.0, 1.0], [NAN, NAN, NAN]
SAMPLED = SamplingParameters(temperature=1.0, top_p=1.0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("parameters", [GREEDY_PRESET, SAMPLED])
def test_a_dead_end_behind_a_rejection_does_not_fail_the_row(device, parameters):
    # The first draft is illegal, so the columns behind it are never taken.
    case = Case([GOOD, BROKEN, GOOD], [2, 1], [{0, 1}, set(), {0}], parameters)
    found = accept([case], device)
    assert found.status.tolist() == [RowStatus.OK]
    assert found.accepted.tolist() == [0]
    assert int(found.tokens[0, 0]) in {0, 1}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("parameters", [GREEDY_PRESET, SAMPLED])
@pytest.mark.parametrize(
    ("second", "allowed", "status"),
    [(GOOD, set(), RowStatus.EMPTY_SET), (BROKEN, {0, 1}, RowStatus.NON_FINITE)],
)
def test_a_broken_column_that_is_taken_fails_its_row_alone(
    device, parameters, second, allowed, status
):
    broken = Case([GOOD, second, GOOD], [1, 1], [{1}, allowed, {0}], parameters)
    sound = Case([GOOD, GOOD, GOOD], [1, 1], [{1}, {1}, {2}], parameters)
    found = accept([sound, broken, sound], device)
    assert found.status.tolist() == [RowStatus.OK, status, RowStatus.OK]
    assert found.accepted.tolist() == [2, 1, 2]
    assert found.tokens[[0, 2]].tolist() == [[1, 1, 2]] * 2


@pytest.mark.parametrize("device", DEVICES)
def test_columns_after_the_extent_are_not_looked_at(device):
    case = Case([GOOD, BROKEN, BROKEN], [], [{2}, set(), set()], SAMPLED)
    found = accept([case], device)
    assert (found.status.tolist(), found.tokens.tolist()) == ([RowStatus.OK], [[2, 0, 0]])


@pytest.mark.parametrize("device", DEVICES)
def test_rows_of_different_extents_and_kinds_share_a_batch(device):
    cases = [
        Case([GOOD] * 4, [1, 1, 1], [None] * 4, GREEDY_PRESET),
        Case([GOOD] * 4, [1], [{1}, {0, 2}, {0}, {0}], GREEDY_PRESET),
        Case([GOOD] * 4, [], [None] * 4, GREEDY_PRESET),
        Case([GOOD] * 4, [1, 2], [{1, 2}, {1, 2}, {1}, {0}], GREEDY_PRESET),
    ]
    found = accept(cases, device)
    assert found.accepted.tolist() == [3, 1, 0, 1]
    assert found.tokens.tolist() == [[1, 1, 1, 1], [1, 2, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0]]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("domain", [3, 5000])
def test_a_draft_counts_for_the_columns_behind_it(device, domain):
    rows = [4.0, 3.5, 3.0] + [-9.0] * (domain - 3)
    penalised = SamplingParameters(temperature=0.0, presence_penalty=0.75, frequency_penalty=0.5)
    case = Case([rows] * 4, [0, 1, 2], [None] * 4, penalised)
    found = accept([case], device)
    # 4, 3.5, 3 -> 2.75, 3.5, 3 -> 2.75, 2.25, 3 -> 2.75, 2.25, 1.75.
    assert found.tokens.tolist() == [[0, 1, 2, 0]]


@pytest.mark.parametrize("device", DEVICES)
def test_a_proposal_of_no_probability_cannot_make_an_illegal_draft_pass(device):
    case = Case([GOOD, GOOD], [2], [{0, 1}, {0}], SAMPLED, proposals=[{0: 1.0}])
    found = accept([case] * 8, device)
    assert found.accepted.tolist() == [0] * 8


@pytest.mark.parametrize("device", DEVICES)
def test_a_residual_without_mass_takes_the_best_candidate(device):
    # q claims more than p everywhere p has support, which no honest drafter can.
    case = Case([GOOD, GOOD], [2], [{0, 1}, {0}], SAMPLED, proposals=[{0: 1.0, 1: 1.0, 2: 1.0}])
    assert accept([case], device).tokens.tolist() == [[1, 0]]


def test_arguments_that_contradict_each_other_are_refused():
    batch = SamplingBatch.pack([SamplingRow(SAMPLED, 0)])
    logits, extents = torch.zeros(1, 3, 5), torch.zeros(1, dtype=torch.int32)
    drafts = torch.zeros(1, 2, dtype=torch.int64)
    with pytest.raises(RowMismatch, match=r"drafts: .*\(1, 3\)"):
        speculative_acceptance(logits, batch, torch.zeros(1, 3).long(), extents)
    with pytest.raises(RowMismatch, match="extents"):
        speculative_acceptance(logits, batch, drafts, extents.long())
    wide = SparseProposal(torch.zeros(1, 2, 17).long(), torch.zeros(1, 2, 17))
    with pytest.raises(RowMismatch, match="17 candidates"):
        speculative_acceptance(logits, batch, drafts, extents, proposal=wide)
    with pytest.raises(RowMismatch, match="rank 2"):
        speculative_acceptance(logits[0], batch, drafts, extents)
