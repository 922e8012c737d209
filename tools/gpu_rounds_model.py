"""Random models and drafters of a real model's shape, drawn on the device that they run on.

Timings need shapes, not knowledge: no checkpoint is read and none is written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ninfer.contract import ModelError, SpeculativeBackend
from ninfer.qwen_frontend import ModelFacts
from ninfer.runtime.loading import LoadedModel
from ninfer.runtime.models.config import DecoderConfig
from ninfer.runtime.models.decoder import Decoder
from ninfer.runtime.models.drafters import Drafter
from ninfer.runtime.models.drafters.build import build_drafter
from ninfer.runtime.models.drafters.config import drafter_config
from ninfer.runtime.models.drafters.head import DraftHead
from ninfer.runtime.models.linear import choose_strategy
from ninfer.runtime.models.registry import decoder_config
from ninfer.runtime.models.weights import WeightReader

DOMAIN = 248_320


class Shape(NamedTuple):
    """Sizes of a hybrid, and of the layers of its drafters."""

    hidden: int
    ffn: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    delta_heads: int
    delta_dim: int
    draft_layers: int


SHAPES = {
    "qwen3.5-2b": Shape(2048, 6144, 24, 8, 2, 256, 16, 128, 5),
    "tiny": Shape(64, 96, 4, 4, 2, 32, 4, 16, 2),
}


def random_model(shape: Shape, device: str) -> LoadedModel:
    """Return a hybrid with random weights and no tokenizer."""
    target = torch.device(device)
    dtype = torch.bfloat16 if target.type == "cuda" else torch.float32
    config = decoder_config(_target_fields(shape), "random")
    reader = RandomWeights(config, target, dtype)
    strategy = choose_strategy(target, dtype)
    decoder = Decoder(config, reader, strategy, device=target, dtype=dtype)
    return LoadedModel(Path("random"), decoder, ModelFacts("", DOMAIN, (DOMAIN - 1,)))


def random_drafter(model: LoadedModel, shape: Shape, backend: SpeculativeBackend) -> Drafter:
    """Return a drafter with random weights."""
    target = model.decoder
    config = drafter_config(_drafter_fields(shape, backend), "random", target.config)
    reader = RandomWeights(config.layers, target.device, target.dtype)
    head = DraftHead(target, DOMAIN)
    return build_drafter(config, reader, target, head)


class RandomWeights(WeightReader):
    """Draws every weight by its name and shape."""

    def __init__(self, config: DecoderConfig, device: torch.device, dtype: torch.dtype) -> None:
        super().__init__(_Nothing(), config, device, dtype)
        self._generator = torch.Generator(device).manual_seed(1)

    def read(self, name: str, shape: tuple[int, ...], dtype: torch.dtype | None = None) -> Tensor:
        """Return numbers whose products keep their size."""
        wanted = self._dtype if dtype is None else dtype
        drawn = torch.randn(shape, generator=self._generator, device=self._device, dtype=wanted)
        self.read_bytes += drawn.nbytes
        if name.endswith(("A_log", "dt_bias")):
            return drawn * 0.3 - 1.0
        if "norm" in name:
            centre = 0.0 if self._config.centred_norms and "linear_attn" not in name else 1.0
            return drawn * 0.1 + centre
        if name.endswith("embed_tokens.weight"):
            # Tokens of unlike weight: the best one then leads by more than rounding.
            drawn *= torch.randn_like(drawn[:, :1]).mul_(0.8).exp_()
        return drawn * (0.8 / shape[-1] ** 0.5)


class _Nothing:
    """Implements: TensorSource; has no tensor."""

    def has(self, name: str) -> bool:
        return False

    def fail(self, name: str, fact: str) -> ModelError:
        return ModelError(f"{name}: {fact}")

    def tensor(self, name: str) -> Tensor:
        raise self.fail(name, "is not drawn")


def _target_fields(shape: Shape) -> dict[str, Any]:
    return {
        "model_type": "qwen3_5_text",
        "hidden_act": "silu",
        "hidden_size": shape.hidden,
        "intermediate_size": shape.ffn,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "full_attention_interval": 4,
        "linear_num_key_heads": shape.delta_heads,
        "linear_num_value_heads": shape.delta_heads,
        "linear_key_head_dim": shape.delta_dim,
        "linear_value_head_dim": shape.delta_dim,
        "linear_conv_kernel_dim": 4,
        "vocab_size": DOMAIN,
        "max_position_embeddings": 1 << 16,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_theta": 1e7, "partial_rotary_factor": 0.25},
        "tie_word_embeddings": True,
    }


def _drafter_fields(shape: Shape, backend: SpeculativeBackend) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "drafter": backend.value,
        "hidden": shape.hidden,
        "heads": shape.heads,
        "kv_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "ffn": shape.ffn,
        "norm_eps": 1e-6,
        "rope_theta": 1e7,
        "layers": shape.draft_layers,
        "target_layers": sorted({shape.layers * part // 6 for part in range(1, 6)}),
        "mask_token": DOMAIN - 2,
        "conv_group": 16,
        "selector_rank": 256,
    }
    if backend is SpeculativeBackend.MTP:
        fields |= {"norm_offset": 1, "qk_norm": True, "gated_attention": True, "rotary_dim": 64}
        fields["rotary_dim"] = min(64, shape.head_dim // 4)
    return fields
