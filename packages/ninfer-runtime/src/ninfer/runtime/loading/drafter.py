"""From a folder to a drafter that fits a model in memory."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor

from ninfer.contract import DrafterError, ModelError, SpeculativeBackend
from ninfer.runtime.loading.checkpoint import Checkpoint
from ninfer.runtime.loading.embedded import embedded_model_path
from ninfer.runtime.loading.load import LoadedModel
from ninfer.runtime.loading.places import is_folder
from ninfer.runtime.loading.published_drafter import PublishedTensors
from ninfer.runtime.models.drafters import Drafter
from ninfer.runtime.models.drafters.build import build_drafter
from ninfer.runtime.models.drafters.config import drafter_config
from ninfer.runtime.models.drafters.head import DraftHead
from ninfer.runtime.models.drafters.mtp import MtpDrafter
from ninfer.runtime.models.drafters.published_config import is_published, published_config
from ninfer.runtime.models.weights import WeightReader

SHIPPED_PACKAGE = "ninfer_demo_drafters"
"""The distribution with drafters for the embedded model, one folder per backend."""


_ID_FORMATS = (torch.uint8, torch.int16, torch.int32, torch.int64)


def load_drafter(
    model: LoadedModel, backend: SpeculativeBackend, folder: Path | None = None
) -> Drafter:
    """Load a drafter for a model: from a folder, else out of its own checkpoint, else as shipped.

    Raises: DrafterError — there is none, it is of another backend, or its files do not fit the
            model.
    """
    try:
        return _found_drafter(model, backend, folder)
    except ModelError as error:
        raise DrafterError(str(error)) from error


def _found_drafter(model: LoadedModel, backend: SpeculativeBackend, folder: Path | None) -> Drafter:
    own = None if folder is not None else _own_mtp(model, backend)
    if own is not None:
        return own
    place = _shipped_folder(model, backend) if folder is None else folder
    if not is_folder(place):
        raise ModelError(f"{place}: is not a folder")
    checkpoint = Checkpoint(place)
    if is_published(checkpoint.config):
        return _published_drafter(model, backend, checkpoint)
    file = str(place / "config.json")
    target = model.decoder
    config = drafter_config(checkpoint.config, file, target.config)
    if config.backend is not backend:
        raise ModelError(f"{file}: drafter: {config.backend.value!r}, not {backend.value!r}")
    reader = WeightReader(_Dequantised(checkpoint), config.layers, target.device, target.dtype)
    domain = model.facts.token_domain
    head = DraftHead(target, domain, _shortlist(checkpoint, domain))
    return build_drafter(config, reader, target, head)


def _published_drafter(
    model: LoadedModel, backend: SpeculativeBackend, checkpoint: Checkpoint
) -> Drafter:
    """Return the drafter of a folder in the published form."""
    file = str(checkpoint.folder / "config.json")
    target = model.decoder
    config = published_config(checkpoint.config, file, target.config)
    if config.backend is not backend:
        fact = f"of a {config.backend.value} drafter, not a {backend.value} one"
        raise ModelError(f"{file}: architectures: {fact}")
    tensors = PublishedTensors(checkpoint)
    reader = WeightReader(tensors, config.layers, target.device, target.dtype)
    drafter = build_drafter(config, reader, target, DraftHead(target, model.facts.token_domain))
    tensors.require_all_read()
    return drafter


def _own_mtp(model: LoadedModel, backend: SpeculativeBackend) -> Drafter | None:
    """Return the drafter that lies in the model's own checkpoint, if it is asked for and there."""
    if backend is not SpeculativeBackend.MTP or not model.path.is_dir():
        return None
    checkpoint = Checkpoint(model.path)
    if not checkpoint.has("mtp.fc.weight"):
        return None
    target = model.decoder
    config = replace(target.config, layers=1, delta=None)
    reader = WeightReader(checkpoint, config, target.device, target.dtype)
    return MtpDrafter(config, reader, target, DraftHead(target, model.facts.token_domain))


def _shipped_folder(model: LoadedModel, backend: SpeculativeBackend) -> Path:
    """Return the folder of the shipped drafter.

    Raises: ModelError — the model is not the embedded one, or nothing is shipped for the backend.
    """
    missing = f"speculative: no {backend.value} drafter for {model.path}:"
    if not _is_embedded(model):
        own = "no mtp.* tensors beside the model; " if backend is SpeculativeBackend.MTP else ""
        raise ModelError(
            f"{missing} {own}{SHIPPED_PACKAGE} is for the embedded model; name a drafter's folder"
        )
    spec = find_spec(SHIPPED_PACKAGE)
    roots = (spec.submodule_search_locations or ()) if spec is not None else ()
    for root in roots:
        folder = Path(root) / backend.value
        if folder.is_dir():
            return folder
    fact = f"has no folder {backend.value}" if roots else "is not installed"
    raise ModelError(f"{missing} {SHIPPED_PACKAGE} {fact}; name a drafter's folder")


def _is_embedded(model: LoadedModel) -> bool:
    try:
        return model.path.resolve() == embedded_model_path().resolve()
    except ModelError:
        return False


def _shortlist(checkpoint: Checkpoint, token_domain: int) -> Tensor | None:
    """Return the ascending ids that a drafter restricts itself to, if it does."""
    name = "shortlist"
    if not checkpoint.has(name):
        return None
    ids = checkpoint.tensor(name)
    if ids.dim() != 1 or not len(ids) or ids.dtype not in _ID_FORMATS:
        raise checkpoint.fail(name, f"{ids.dtype}{tuple(ids.shape)} is no list of token ids")
    wide = ids.to(torch.int64)
    if bool((wide.diff() <= 0).any()) or not 0 <= int(wide[0]) <= int(wide[-1]) < token_domain:
        raise checkpoint.fail(name, f"not ascending ids below {token_domain}")
    return wide


class _Dequantised:
    """Implements: TensorSource; ``NAME`` in int8 is scaled row by row by ``NAME.scale``."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint

    def has(self, name: str) -> bool:
        return self._checkpoint.has(name)

    def fail(self, name: str, fact: str) -> ModelError:
        return self._checkpoint.fail(name, fact)

    def tensor(self, name: str) -> Tensor:
        stored = self._checkpoint.tensor(name)
        if stored.dtype != torch.int8:
            return stored
        scale = self._checkpoint.tensor(name + ".scale")
        if not scale.is_floating_point():
            raise self.fail(name + ".scale", f"{scale.dtype} is not served")
        scale = scale.float().flatten()
        if stored.dim() == 0 or len(scale) != len(stored):
            shapes = f"{len(scale)} numbers for the rows of {tuple(stored.shape)}"
            raise self.fail(name + ".scale", shapes)
        return stored.float() * scale.view(-1, *[1] * (stored.dim() - 1))
