"""Tensors of a drafter's folder that are not what they stand for are refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from ninfer.contract import DrafterError, SpeculativeBackend
from ninfer.runtime.loading import LoadedModel, load_drafter, load_model
from support.tiny_drafters import mtp_config, write_drafter
from support.tiny_models import write_checkpoint

WEIGHT = "mtp.layers.0.mlp.up_proj.weight"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return load_model(write_checkpoint(tmp_path_factory.mktemp("model")))


@pytest.mark.parametrize(
    ("tensors", "fact"),
    [
        ({WEIGHT: torch.tensor(3, dtype=torch.int8)}, f"{WEIGHT}.scale: 48 numbers for the rows"),
        (
            {WEIGHT: torch.ones(48, 64, dtype=torch.int8), f"{WEIGHT}.scale": torch.ones(47)},
            f"{WEIGHT}.scale: 47 numbers for the rows of (48, 64)",
        ),
        (
            {
                WEIGHT: torch.ones(48, 64, dtype=torch.int8),
                f"{WEIGHT}.scale": torch.ones(48, dtype=torch.int32),
            },
            f"{WEIGHT}.scale: torch.int32 is not served",
        ),
        (
            {
                WEIGHT: torch.ones(48, 64, dtype=torch.int8),
                f"{WEIGHT}.scale": torch.full((48,), float("nan")),
            },
            f"{WEIGHT}: has numbers that are not finite",
        ),
        ({WEIGHT: torch.ones(48, 64, dtype=torch.int32)}, f"{WEIGHT}: torch.int32 is not served"),
        ({"shortlist": torch.tensor([True])}, "shortlist: torch.bool(1,) is no list of token ids"),
        ({"shortlist": torch.tensor([1j])}, "shortlist: torch.complex64(1,) is no list"),
    ],
)
def test_a_tensor_of_a_drafter_is_what_it_stands_for(
    tmp_path: Path, model: LoadedModel, tensors: dict[str, torch.Tensor], fact: str
) -> None:
    folder = write_drafter(tmp_path / "drafter", mtp_config())
    file = folder / "model.safetensors"
    save_file(load_file(file) | {f"{WEIGHT}.scale": torch.ones(48)} | tensors, file)
    with pytest.raises(DrafterError) as caught:
        load_drafter(model, SpeculativeBackend.MTP, folder)
    assert str(caught.value).startswith(f"{folder}: {fact}")
