"""The block form of the gated delta rule against its one-column recurrence in float64."""

import pytest
import torch

from ninfer.runtime.models.gated_delta import fold, fold_all, gated_delta, unit_lower_inverse
from ninfer.runtime.models.gated_delta_chunk import gated_delta_chunk

torch.set_num_threads(1)
RULES = [gated_delta, gated_delta_chunk]


def recurrence(q, k, v, g, beta, state):
    """Apply the rule column by column; return the reads and the state after every column."""
    reads, states = [], [state]
    for t in range(q.shape[2]):
        state = state * g[..., t].exp()[..., None, None]
        seen = torch.einsum("rhkv,rhk->rhv", state, k[:, :, t])
        delta = beta[..., t, None] * (v[:, :, t] - seen)
        state = state + torch.einsum("rhk,rhv->rhkv", k[:, :, t], delta)
        reads.append(torch.einsum("rhkv,rhk->rhv", state, q[:, :, t]))
        states.append(state)
    return torch.stack(reads, dim=2), states


def random_block(columns, seed):
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    rows, heads, dk, dv = 3, 2, 8, 6
    q, k = (torch.nn.functional.normalize(draw(rows, heads, columns, dk), dim=-1) for _ in "qk")
    v = draw(rows, heads, columns, dv)
    g = -torch.nn.functional.softplus(draw(rows, heads, columns))
    beta = draw(rows, heads, columns).sigmoid()
    return q, k, v, g, beta, draw(rows, heads, dk, dv)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("columns", [1, 2, 15, 64, 65, 150, 320])
def test_a_block_reads_what_the_recurrence_reads(columns, rule):
    block = random_block(columns, columns)
    expected, states = recurrence(*block)
    read, records = rule(*(x.float() for x in block))
    torch.testing.assert_close(read.double(), expected, atol=1e-4, rtol=1e-4)
    end = fold_all(block[-1].float(), records).double()
    torch.testing.assert_close(end, states[-1], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("columns", [1, 16, 100])
def test_every_prefix_of_a_block_can_be_folded(columns, rule):
    block = random_block(columns, 7)
    _, states = recurrence(*block)
    state = block[-1].float()
    kept = state.clone()
    _, records = rule(*(x.float() for x in block))
    for accepted in {0, 1, columns // 2, columns}:
        counts = torch.tensor([accepted, columns - accepted, min(1, columns)])
        folded = fold(state, records, counts)
        for row, count in enumerate(counts.tolist()):
            torch.testing.assert_close(
                folded[row].double(), states[count][row], atol=1e-4, rtol=1e-4
            )
    assert torch.equal(state, kept)


def test_a_padding_column_leaves_the_state_alone():
    q, k, v, g, beta, state = (x.float() for x in random_block(4, 3))
    g[:, :, 2:], beta[:, :, 2:] = 0.0, 0.0
    _, padded = gated_delta(q, k, v, g, beta, state)
    _, short = gated_delta(*(x[:, :, :2] for x in (q, k, v, g, beta)), state)
    ends = [fold_all(state, records) for records in (padded, short)]
    torch.testing.assert_close(*ends, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("rule", RULES)
def test_strong_decay_does_not_overflow(rule):
    q, k, v, g, beta, state = (x.float() for x in random_block(64, 5))
    read, records = rule(q, k, v, g - 20.0, beta, state)
    assert read.isfinite().all()
    assert fold(state, records, torch.tensor([0, 3, 64])).isfinite().all()


@pytest.mark.parametrize("columns", [1, 2, 3, 7, 16, 64])
def test_an_inverse_by_products_solves_the_system(columns):
    generator = torch.Generator().manual_seed(columns)
    lower = torch.rand(2, 3, columns, columns, generator=generator).tril(-1)
    wanted = torch.randn(2, 3, columns, 5, generator=generator)
    exact = torch.linalg.solve_triangular(
        lower.double(), wanted.double(), upper=False, unitriangular=True
    )
    found = (unit_lower_inverse(lower) @ wanted).double()
    torch.testing.assert_close(found, exact, atol=1e-4, rtol=1e-4)
