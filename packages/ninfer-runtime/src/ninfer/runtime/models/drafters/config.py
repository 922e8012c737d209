"""The ``config.json`` of a drafter's folder; every refusal names the file and the field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ninfer.contract import SpeculativeBackend
from ninfer.ops import PROPOSAL_CANDIDATES
from ninfer.runtime.models.config import DecoderConfig, RopeConfig
from ninfer.runtime.models.config_fields import ConfigFields


@dataclass(frozen=True, slots=True)
class DrafterConfig:
    """A drafter's kind and the shape of its layers.

    ``target_layers`` are the target's layers whose streams a block drafter reads, and
    ``mask_token`` stands in the places that it fills.
    """

    backend: SpeculativeBackend
    layers: DecoderConfig
    target_layers: tuple[int, ...] = ()
    mask_token: int = 0
    conv_group: int = 0
    selector_rank: int = 0


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
    taps = _target_layers(fields, target)
    mask = fields.require("mask_token", int)
    if not 0 <= mask < target.vocab_rows:
        raise fields.fail("mask_token", f"{mask} is not a row of the embedding")
    if backend is SpeculativeBackend.DFLASH:
        return DrafterConfig(backend, layers, taps, mask)
    group = _positive(fields, "conv_group")
    if layers.hidden % group:
        raise fields.fail("conv_group", f"{group} does not divide {layers.hidden} channels")
    fields.allow("selector_top_k", (PROPOSAL_CANDIDATES,))
    return DrafterConfig(backend, layers, taps, mask, group, _positive(fields, "selector_rank"))


def _layers(
    fields: ConfigFields, target: DecoderConfig, backend: SpeculativeBackend
) -> DecoderConfig:
    hidden = _positive(fields, "hidden")
    if hidden != target.hidden:
        raise fields.fail("hidden", f"{hidden}, the target has {target.hidden}")
    heads, kv_heads = _positive(fields, "heads"), _positive(fields, "kv_heads")
    if heads % kv_heads:
        raise fields.fail("kv_heads", f"{kv_heads} does not divide {heads} heads")
    head_dim = _positive(fields, "head_dim")
    is_mtp = backend is SpeculativeBackend.MTP
    if fields.has("sliding_window"):
        raise fields.fail("sliding_window", "is not served: layers see the whole context")
    if not is_mtp:
        fields.allow("norm_offset", (0,))
        fields.allow("gated_attention", (False,))
        fields.allow("qk_norm", (True,))
    fields.allow("norm_offset", (0, 1))
    return DecoderConfig(
        family=backend.value,
        hidden=hidden,
        layers=1 if is_mtp else _positive(fields, "layers"),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        ffn=_positive(fields, "ffn"),
        vocab_rows=target.vocab_rows,
        norm_eps=fields.require("norm_eps", float),
        rope=RopeConfig(fields.require("rope_theta", float), _rotary_dim(fields, head_dim)),
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


def _target_layers(fields: ConfigFields, target: DecoderConfig) -> tuple[int, ...]:
    taps = tuple(int(tap) for tap in fields.numbers("target_layers"))
    if not taps or list(taps) != sorted(set(taps)) or not 0 <= taps[0] <= taps[-1] < target.layers:
        raise fields.fail(
            "target_layers", f"{list(taps)} are not ascending layers of {target.layers}"
        )
    return taps


def _positive(fields: ConfigFields, name: str) -> int:
    value = fields.require(name, int)
    if value <= 0:
        raise fields.fail(name, f"{value} is not positive")
    return value
