"""The ``config.json`` of a drafter's folder; every refusal names the file and the field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ninfer.contract import SpeculativeBackend
from ninfer.ops import PROPOSAL_CANDIDATES
from ninfer.runtime.models.config import DecoderConfig, RopeConfig
from ninfer.runtime.models.config_fields import ConfigFields
from ninfer.runtime.models.drafters.shape_fields import (
    conv_group,
    kv_heads,
    mask_token,
    same,
    tapped_layers,
    whole_numbers,
)


@dataclass(frozen=True, slots=True)
class DrafterConfig:
    """A drafter's kind and the shape of its layers.

    ``target_layers`` are the target's layers whose streams a block drafter reads, and
    ``mask_token`` stands in the places that it fills. ``windows`` has one entry per layer: how many
    positions away a layer no longer sees, None where it sees everything; without entries all do.
    """

    backend: SpeculativeBackend
    layers: DecoderConfig
    target_layers: tuple[int, ...] = ()
    mask_token: int = 0
    conv_group: int = 0
    selector_rank: int = 0
    windows: tuple[int | None, ...] = ()

    def window(self, layer: int) -> int | None:
        """Return the window of one layer."""
        return self.windows[layer] if self.windows else None


def drafter_config(
    config: Mapping[str, object], source: str, target: DecoderConfig
) -> DrafterConfig:
    """Return what a drafter's configuration describes; ``source`` names the file in errors.

    Raises: ModelError — a field is missing, has another type, or does not fit the target.
    """
    fields = ConfigFields(config, source)
    name = fields.require("drafter", str)
    kinds = {b.value: b for b in SpeculativeBackend if b is not SpeculativeBackend.NONE}
    if name not in kinds:
        raise fields.fail("drafter", f"{name!r} is not one of {', '.join(kinds)}")
    backend = kinds[name]
    layers = _layers(fields, target, backend)
    if backend is SpeculativeBackend.MTP:
        return DrafterConfig(backend, layers)
    is_second = backend is SpeculativeBackend.DFLASH2
    if is_second:
        fields.allow("selector_top_k", (PROPOSAL_CANDIDATES,))
    return DrafterConfig(
        backend,
        layers,
        tapped_layers(fields, "target_layers", target),
        mask_token(fields, "mask_token", target),
        conv_group(fields, "conv_group", target) if is_second else 0,
        fields.positive("selector_rank", int) if is_second else 0,
        _windows(fields, layers.layers),
    )


def _layers(
    fields: ConfigFields, target: DecoderConfig, backend: SpeculativeBackend
) -> DecoderConfig:
    heads, head_dim = fields.positive("heads", int), fields.positive("head_dim", int)
    is_mtp = backend is SpeculativeBackend.MTP
    if fields.has("sliding_window"):
        raise fields.fail("sliding_window", "is not served: windows says how far layers see")
    if is_mtp and fields.has("windows"):
        raise fields.fail("windows", "is not served: an mtp layer sees the whole context")
    if not is_mtp:
        fields.allow("norm_offset", (0,))
        fields.allow("gated_attention", (False,))
        fields.allow("qk_norm", (True,))
    fields.allow("norm_offset", (0, 1))
    return DecoderConfig(
        family=backend.value,
        hidden=same(fields, "hidden", target.hidden),
        layers=1 if is_mtp else fields.positive("layers", int),
        heads=heads,
        kv_heads=kv_heads(fields, "kv_heads", heads),
        head_dim=head_dim,
        ffn=fields.positive("ffn", int),
        vocab_rows=target.vocab_rows,
        norm_eps=fields.positive("norm_eps", float),
        rope=RopeConfig(fields.positive("rope_theta", float), _rotary_dim(fields, head_dim)),
        context_tokens=target.context_tokens,
        qk_norm=fields.require("qk_norm", bool) if is_mtp else True,
        output_gate=fields.get("gated_attention", bool, False),
        centred_norms=fields.get("norm_offset", int, 0) == 1,
    )


def _rotary_dim(fields: ConfigFields, head_dim: int) -> int:
    width = fields.get("rotary_dim", int, head_dim)
    if not 0 < width <= head_dim or width % 2:
        raise fields.fail("rotary_dim", f"{width} is not an even number up to {head_dim}")
    return width


def _windows(fields: ConfigFields, layers: int) -> tuple[int | None, ...]:
    if not fields.has("windows"):
        return ()
    windows = whole_numbers(fields, "windows")
    if len(windows) != layers or min(windows) < 0:
        raise fields.fail("windows", f"{list(windows)} are not {layers} windows or 0 for none")
    return tuple(window or None for window in windows)
