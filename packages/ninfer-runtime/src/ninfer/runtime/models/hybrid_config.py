"""The shape of a Qwen3.5 text model from its ``config.json``."""

from __future__ import annotations

from dataclasses import replace

from ninfer.runtime.models.config import DecoderConfig, DeltaConfig
from ninfer.runtime.models.config_fields import ConfigFields
from ninfer.runtime.models.dense_config import FULL_ATTENTION, dense_config

RECURRENT = "linear_attention"


def hybrid_config(fields: ConfigFields, family: str) -> DecoderConfig:
    """Return the shape of a hybrid; ``text_config`` holds it where a vision tower stands beside.

    Raises: ModelError — a field is missing, has another type, or asks for what is not served.
    """
    text = fields.nested("text_config") if fields.has("text_config") else fields
    text.allow("attention_bias", (False,))
    text.allow("attn_output_gate", (True,))
    rope = text.nested("rope_parameters")
    part = rope.get("partial_rotary_factor", float, text.get("partial_rotary_factor", float, 0.25))
    if not 0 < part <= 1:
        raise rope.fail("partial_rotary_factor", f"{part} is not above 0 and up to 1")
    if fields.has("quantization_config"):
        raise fields.fail("quantization_config", "is not served: weights are read as they stand")
    shape = dense_config(text, family, part)
    rotated = shape.rope.rotary_dim
    if not 0 < rotated <= shape.head_dim or rotated % 2:
        raise rope.fail("partial_rotary_factor", f"turns {rotated} of {shape.head_dim} numbers")
    return replace(
        shape,
        qk_norm=True,
        output_gate=True,
        centred_norms=True,
        tied_embeddings=fields.get("tie_word_embeddings", bool, shape.tied_embeddings),
        delta=_delta(text, shape.layers),
    )


def _delta(fields: ConfigFields, layers: int) -> DeltaConfig:
    key_heads = fields.positive("linear_num_key_heads", int)
    value_heads = fields.positive("linear_num_value_heads", int)
    if value_heads % key_heads:
        fact = f"{key_heads} does not divide {value_heads} value heads"
        raise fields.fail("linear_num_key_heads", fact)
    conv_columns = fields.require("linear_conv_kernel_dim", int)
    if conv_columns < 2:
        raise fields.fail("linear_conv_kernel_dim", f"{conv_columns} is less than 2")
    return DeltaConfig(
        layers=_recurrent_layers(fields, layers),
        key_heads=key_heads,
        value_heads=value_heads,
        key_dim=fields.positive("linear_key_head_dim", int),
        value_dim=fields.positive("linear_value_head_dim", int),
        conv_columns=conv_columns,
    )


def _recurrent_layers(fields: ConfigFields, layers: int) -> tuple[int, ...]:
    """Read ``layer_types``, or take every layer but each ``full_attention_interval``-th."""
    if not fields.has("layer_types"):
        interval = fields.get("full_attention_interval", int, 4)
        if interval < 1:
            raise fields.fail("full_attention_interval", f"{interval} is less than 1")
        return tuple(index for index in range(layers) if (index + 1) % interval)
    kinds = fields.texts("layer_types")
    if len(kinds) != layers:
        raise fields.fail("layer_types", f"{len(kinds)} kinds for {layers} layers")
    for kind in kinds:
        if kind not in (FULL_ATTENTION, RECURRENT):
            served = f"{FULL_ATTENTION}, {RECURRENT}"
            raise fields.fail("layer_types", f"{kind!r} is not served (served: {served})")
    return tuple(index for index, kind in enumerate(kinds) if kind == RECURRENT)
