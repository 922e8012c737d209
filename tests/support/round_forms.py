"""The forms that rounds have besides the CPU's own, where each can run."""

from __future__ import annotations

import pytest
import torch

from ninfer.runtime.program import RoundForm

_ON_CUDA = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
FORMS = [
    pytest.param(("cpu", RoundForm.STAGED), id="cpu-staged"),
    pytest.param(("cuda", RoundForm.STAGED), id="cuda-staged", marks=_ON_CUDA),
    pytest.param(("cuda", RoundForm.CAPTURED), id="cuda-captured", marks=_ON_CUDA),
]
"""A device and the form of rounds on it."""
Form = tuple[str, RoundForm]
