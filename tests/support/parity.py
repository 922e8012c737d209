"""What comparisons of logits with another implementation share."""

from __future__ import annotations

import torch

from support.tiny_models import VOCAB_ROWS

TOLERANCE = 1e-4


def random_tokens(count: int, seed: int) -> list[int]:
    """Return tokens of a tiny model."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, VOCAB_ROWS, (count,), generator=generator).tolist()


def assert_same(found: torch.Tensor, expected: torch.Tensor) -> None:
    """Check float32 logits: the same choices, and the same numbers within the tolerance."""
    assert found.dtype == torch.float32
    assert torch.equal(found.argmax(-1), expected.argmax(-1))
    torch.testing.assert_close(found, expected, atol=TOLERANCE, rtol=TOLERANCE)
