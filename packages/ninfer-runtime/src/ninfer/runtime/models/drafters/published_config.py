"""The ``config.json`` of a published DFlash or DFlash2 drafter.

Every refusal names the file and the field.
"""

from __future__ import annotations

from collections.abc import Mapping

from ninfer.contract import SpeculativeBackend
from ninfer.ops import PROPOSAL_CANDIDATES
from ninfer.runtime.models.config import DecoderConfig, RopeConfig
from ninfer.runtime.models.config_fields import ConfigFields
from ninfer.runtime.models.dense_config import FULL_ATTENTION
from ninfer.runtime.models.drafters.config import DrafterConfig
from ninfer.runtime.models.drafters.published_fields import (
    OWN,
    ROPES,
    place_of,
    published_fields,
    refuse_unserved,
)
from ninfer.runtime.models.drafters.shape_fields import (
    conv_group,
    kv_heads,
    mask_token,
    same,
    tapped_layers,
)

ARCHITECTURES = {
    "DFlashDraftModel": SpeculativeBackend.DFLASH,
    "DFlash2DraftModel": SpeculativeBackend.DFLASH2,
}
SLIDING = "sliding_attention"
_CONV_COLUMNS = 2
_UNWINDOWED_LAYERS = 28
"""The first layer with a window where neither ``layer_types`` nor ``max_window_layers`` says it."""


def is_published(config: Mapping[str, object]) -> bool:
    """Return whether a configuration is a published drafter's and not one of our own format."""
    names = config.get("architectures")
    is_named = isinstance(names, list) and any(name in names for name in ARCHITECTURES)
    return "drafter" not in config and (is_named or OWN in config)


def published_config(
    config: Mapping[str, object], source: str, target: DecoderConfig
) -> DrafterConfig:
    """Return what a published configuration describes; ``source`` names the file in errors.

    Raises: ModelError — a field is missing, has another type, asks for what is not served, or does
            not fit the target.
    """
    fields = published_fields(config, source)
    backend = _backend(fields)
    is_second = backend is SpeculativeBackend.DFLASH2
    refuse_unserved(fields, config, backend)
    layers = _layers(fields, target, backend)
    _require_target(fields, target)
    if is_second:
        _require_value(fields, "conv_kernel_size", _CONV_COLUMNS)
        _require_value(fields, "selector_top_k", PROPOSAL_CANDIDATES)
    return DrafterConfig(
        backend,
        layers,
        _target_layers(fields, layers.layers, target),
        mask_token(fields, place_of(fields, "mask_token_id"), target),
        conv_group(fields, place_of(fields, "conv_group_size"), target) if is_second else 0,
        fields.positive(place_of(fields, "selector_rank"), int) if is_second else 0,
        _windows(fields, layers.layers),
    )


def _backend(fields: ConfigFields) -> SpeculativeBackend:
    names = fields.texts("architectures")
    if len(names) != 1 or names[0] not in ARCHITECTURES:
        served = ", ".join(ARCHITECTURES)
        raise fields.fail("architectures", f"{list(names)} is not served (served: {served})")
    return ARCHITECTURES[names[0]]


def _layers(
    fields: ConfigFields, target: DecoderConfig, backend: SpeculativeBackend
) -> DecoderConfig:
    heads = fields.positive("num_attention_heads", int)
    head_dim = fields.positive("head_dim", int)
    if head_dim % 2:
        raise fields.fail("head_dim", f"{head_dim} is not even: halves turn against each other")
    return DecoderConfig(
        family=backend.value,
        hidden=same(fields, "hidden_size", target.hidden),
        layers=fields.positive("num_hidden_layers", int),
        heads=heads,
        kv_heads=kv_heads(fields, "num_key_value_heads", heads),
        head_dim=head_dim,
        ffn=fields.positive("intermediate_size", int),
        vocab_rows=same(fields, "vocab_size", target.vocab_rows),
        norm_eps=fields.positive("rms_norm_eps", float),
        rope=RopeConfig(_rope_theta(fields), head_dim),
        context_tokens=target.context_tokens,
        qk_norm=True,
    )


def _require_value(fields: ConfigFields, name: str, served: int) -> None:
    place = place_of(fields, name)
    fields.require(place, int)
    fields.allow(place, (served,))


def _require_target(fields: ConfigFields, target: DecoderConfig) -> None:
    """Check what a configuration may say about the model that it was trained for."""
    for name, own in (
        ("num_target_layers", target.layers),
        ("target_hidden_size", target.hidden),
        ("draft_vocab_size", target.vocab_rows),
    ):
        place = place_of(fields, name)
        if fields.has(place):
            same(fields, place, own)


def _rope_theta(fields: ConfigFields) -> float:
    """Return the base of plain rotation, which three places may name and may not dispute."""
    found = {}
    for place in (*(f"{name}.rope_theta" for name in ROPES), "rope_theta"):
        if fields.has(place):
            found[place] = fields.positive(place, float)
    if not found:
        raise fields.fail("rope_parameters.rope_theta", "is missing")
    (first, theta), *others = found.items()
    for place, other in others:
        if other != theta:
            raise fields.fail(place, f"{other}, but {first} is {theta}")
    return theta


def _target_layers(fields: ConfigFields, layers: int, target: DecoderConfig) -> tuple[int, ...]:
    place = place_of(fields, "target_layer_ids")
    if fields.has(place):
        return tapped_layers(fields, place, target)
    taps = default_target_layers(layers, target.layers)
    if len(set(taps)) < layers or not 0 <= taps[0] <= taps[-1] < target.layers:
        fact = f"is missing, and {target.layers} layers have no {layers} usual ones"
        raise fields.fail(place, fact)
    return taps


def default_target_layers(layers: int, of_target: int) -> tuple[int, ...]:
    """Return the layers that a drafter reads whose configuration does not say it.

    Math: one layer reads ⌊L / 2⌋; n layers read 1 + i · (L − 4) / (n − 1), rounded, 0 ≤ i < n.
    """
    if layers == 1:
        return (of_target // 2,)
    return tuple(1 + round(index * (of_target - 4) / (layers - 1)) for index in range(layers))


def _windows(fields: ConfigFields, layers: int) -> tuple[int | None, ...]:
    kinds = _layer_types(fields, layers)
    if SLIDING not in kinds:
        return ()
    if not fields.get("use_sliding_window", bool, True):
        raise fields.fail("use_sliding_window", f"False, but layer_types has {SLIDING}")
    window = fields.positive("sliding_window", int)
    return tuple(window if kind == SLIDING else None for kind in kinds)


def _layer_types(fields: ConfigFields, layers: int) -> tuple[str, ...]:
    """Read ``layer_types``; without it ``use_sliding_window`` gives windows to the last layers."""
    if not fields.has("layer_types"):
        first = layers
        if fields.get("use_sliding_window", bool, False):
            first = fields.get("max_window_layers", int, _UNWINDOWED_LAYERS)
        return tuple(SLIDING if index >= first else FULL_ATTENTION for index in range(layers))
    kinds = fields.texts("layer_types")
    if len(kinds) != layers:
        raise fields.fail("layer_types", f"{len(kinds)} kinds for {layers} layers")
    for kind in kinds:
        if kind not in (SLIDING, FULL_ATTENTION):
            raise fields.fail(
                "layer_types", f"{kind!r} is not served (served: {SLIDING}, {FULL_ATTENTION})"
            )
    return kinds
