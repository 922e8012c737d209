"""The fields of a published drafter's ``config.json``: where they stand, and what they may say.

A value stands in ``dflash_config`` or, where it is not there, beside it; errors spell the names of
inner fields with a dot.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ninfer.contract import SpeculativeBackend
from ninfer.runtime.models.config_fields import ConfigFields

OWN = "dflash_config"
ROPES = ("rope_parameters", "rope_scaling")
_SERVED: dict[str, tuple[object, ...]] = {
    "model_type": ("qwen3",),
    "hidden_act": ("silu",),
    "attention_bias": (False,),
    "mlp_bias": (False,),
    "is_causal": (False,),
    "attention_mode": ("gqa", "mha"),
    "input_embedding_scale": (1,),
    "output_multiplier": (1,),
    "final_logit_softcapping": (0,),
    "fc_layernorm": (False,),
    "fc_norm": (False,),
    "markov_rank": (0,),
    "partial_rotary_factor": (1,),
}
"""What fields may say that could change what is computed; an absent one says the first value."""
_KNOWN = {"target_layer_ids", "mask_token_id", "block_size", "num_target_layers", "projector_type"}
_KNOWN_SECOND = {"conv_kernel_size", "conv_group_size", "selector_rank", "selector_top_k"}
_KNOWN_ROPE = {"rope_theta", "rope_type", "type", "partial_rotary_factor"}


def published_fields(config: Mapping[str, object], source: str) -> ConfigFields:
    """Return the fields with those of inner objects under dotted names.

    Raises: ModelError — an inner object is anything else.
    """
    flat = dict(config)
    for name in (OWN, *ROPES):
        inner = config.get(name)
        if isinstance(inner, Mapping):
            flat |= {f"{name}.{key}": value for key, value in inner.items()}
        elif inner is not None:
            raise ConfigFields(config, source).fail(name, "is not an object")
    return ConfigFields(flat, source)


def place_of(fields: ConfigFields, name: str) -> str:
    """Return the name under which a value stands, or should."""
    inner = f"{OWN}.{name}"
    return name if fields.has(name) and not fields.has(inner) else inner


def refuse_unserved(
    fields: ConfigFields, config: Mapping[str, object], backend: SpeculativeBackend
) -> None:
    """Check that nothing asks for another arithmetic than ours.

    Raises: ModelError — a field has a value that is not served, or is one that nobody knows.
    """
    for name, served in _SERVED.items():
        fields.allow(place_of(fields, name), served)
    fields.allow(place_of(fields, "projector_type"), (backend.value,))
    if fields.has("quantization_config"):
        raise fields.fail("quantization_config", "is not served: weights are read as they stand")
    second = _KNOWN_SECOND if backend is SpeculativeBackend.DFLASH2 else set()
    _refuse_unknown(fields, config, OWN, {*_SERVED, *_KNOWN, *second})
    for name in ROPES:
        for key in ("rope_type", "type"):
            fields.allow(f"{name}.{key}", ("default",))
        fields.allow(f"{name}.partial_rotary_factor", (1,))
        _refuse_unknown(fields, config, name, _KNOWN_ROPE)


def _refuse_unknown(
    fields: ConfigFields, config: Mapping[str, object], name: str, known: Collection[str]
) -> None:
    inner = config.get(name)
    for key in inner if isinstance(inner, Mapping) else ():
        if key not in known and fields.has(f"{name}.{key}"):
            raise fields.fail(f"{name}.{key}", "is not a field that is served")
