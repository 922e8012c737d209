"""A trained drafter as the folder that ninfer.runtime reads: int8 rows with a scale each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from drafters.target import Shape


class Trained(Protocol):
    """What a folder is made from."""

    def named_tensors(self) -> Mapping[str, nn.Parameter]:
        """Return the parameters under their names in the folder."""
        ...

    def config(self) -> dict[str, object]:
        """Return the kind's own fields of ``config.json``."""
        ...


def save_folder(folder: Path, drafter: Trained, shape: Shape, shortlist: Tensor) -> None:
    """Write config.json and model.safetensors.

    Math: a matrix row w is stored as round(w / s) with s = max |w| / 127.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stored: dict[str, Tensor] = {"shortlist": shortlist.to(torch.int32).cpu().contiguous()}
    for name, parameter in drafter.named_tensors().items():
        weight = parameter.detach().float().cpu()
        if weight.dim() != 2:
            stored[name] = weight.to(torch.bfloat16).contiguous()
            continue
        scale = (weight.abs().amax(1) / 127).clamp_min(1e-12)
        stored[name] = (weight / scale[:, None]).round().to(torch.int8)
        stored[name + ".scale"] = scale
    save_file(stored, str(folder / "model.safetensors"))
    config = drafter.config() | {
        "hidden": shape.hidden,
        "heads": shape.heads,
        "kv_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "ffn": shape.ffn,
        "norm_eps": shape.norm_eps,
        "rope_theta": shape.rope_theta,
    }
    write_json(folder / "config.json", config)


@torch.no_grad()
def restore(folder: Path, drafter: Trained) -> None:
    """Read a folder's weights back into a drafter, so that what is judged is what was written."""
    stored = load_file(str(folder / "model.safetensors"))
    for name, parameter in drafter.named_tensors().items():
        weight = stored[name].float()
        if name + ".scale" in stored:
            weight = weight * stored[name + ".scale"][:, None]
        parameter.copy_(weight)


def write_json(file: Path, value: Mapping[str, object]) -> None:
    """Write one JSON file as people read it."""
    file.write_text(json.dumps(value, indent=1) + "\n")
