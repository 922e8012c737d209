"""From a path to a model in memory and the facts its frontend needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from ninfer.contract import ModelError
from ninfer.qwen_frontend.facts import ModelFacts
from ninfer.runtime.loading.cache import converted
from ninfer.runtime.loading.checkpoint import Checkpoint
from ninfer.runtime.loading.embedded import embedded_model_path
from ninfer.runtime.loading.facts import checkpoint_facts
from ninfer.runtime.loading.places import require_model
from ninfer.runtime.loading.progress import LoadStage, Progress, report
from ninfer.runtime.models.decoder import Decoder
from ninfer.runtime.models.linear import choose_strategy
from ninfer.runtime.models.registry import decoder_config
from ninfer.runtime.models.weights import WeightReader


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A decoder on its device, and what a frontend must know of it; ``path`` is what was asked."""

    path: Path
    decoder: Decoder
    facts: ModelFacts


def load_model(
    path: Path | None = None,
    *,
    device: str = "cpu",
    dtype: torch.dtype | None = None,
    progress: Progress | None = None,
) -> LoadedModel:
    """Load a GGUF file or a Hugging Face folder; without a path the embedded model.

    Effects: a GGUF file is converted into the cache folder the first time; later loads map it.
    Raises:  ModelError — files are missing, broken or not served; the cache cannot be written.
    """
    source = embedded_model_path() if path is None else path
    require_model(source)
    if source.is_dir():
        return _load(source, source, device, dtype, progress)
    folder = _converted(source, progress)
    try:
        return _load(source, folder, device, dtype, progress)
    except ModelError as error:
        raise ModelError(f"{source}: as converted: {error}") from error


def _load(
    source: Path,
    folder: Path,
    device: str,
    dtype: torch.dtype | None,
    progress: Progress | None,
) -> LoadedModel:
    checkpoint = Checkpoint(folder)
    config = decoder_config(checkpoint.config, str(checkpoint.folder / "config.json"))
    facts = checkpoint_facts(checkpoint, source.stem if source.is_file() else source.name)
    if facts.token_domain > config.vocab_rows:
        fact = f"{config.vocab_rows} rows for {facts.token_domain} token ids"
        raise checkpoint.fail("vocab_size", fact)
    target = torch.device(device)
    number_format = default_dtype(target) if dtype is None else dtype
    decoder = Decoder(
        config,
        WeightReader(checkpoint, config, target, number_format),
        choose_strategy(target, number_format),
        device=target,
        dtype=number_format,
        loaded=lambda layer: report(progress, LoadStage.WEIGHTS, layer, config.layers),
    )
    return LoadedModel(source, decoder, facts)


def default_dtype(device: torch.device) -> torch.dtype:
    """Return bfloat16 where the device computes in it, else float32."""
    if device.type == "cpu" and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        return torch.float32
    return torch.bfloat16


def _converted(source: Path, progress: Progress | None) -> Path:
    report(progress, LoadStage.IDENTIFY, 0, 1)

    def convert_into(folder: Path) -> None:
        # Imported here: parsing libraries cost start-up time that later starts must not pay.
        from ninfer.runtime.loading.conversion import convert

        convert(source, folder, progress)

    return converted(source, convert_into)
